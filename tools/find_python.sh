#!/bin/sh
# Prints the Python to make the environment with: $1 if given, else the one that
# .venv was made with, else the first of 3.11 to 3.13 found. Says what to do if none.
set -u
cd "$(dirname "$0")/.." || exit 1
apt_venv=

usable() { # in range and able to make an environment
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
    2>/dev/null || return 1
  "$1" -c 'import venv, ensurepip' 2>/dev/null && return 0
  apt_venv="python$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
  return 1
}

first_usable() {
  for candidate in "$@"; do
    if usable "$candidate"; then command -v "$candidate" && return 0; fi
  done
  return 1
}

if [ -n "${1:-}" ]; then
  set -- "$1"
else
  made_with=$(.venv/bin/python -c 'import sys; print(sys._base_executable)' 2>/dev/null)
  set -- ${made_with:+"$made_with"} python3 python3.13 python3.12 python3.11 python
fi

first_usable "$@" && exit 0
if [ -n "$apt_venv" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "Python's venv module is missing: installing $apt_venv …" >&2
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "$apt_venv"; } \
    >/dev/null 2>&1 </dev/null
  first_usable "$@" && exit 0
fi

if [ -n "$apt_venv" ]; then
  echo "Python was found, but not its venv module. On Debian and Ubuntu:" >&2
  echo "    sudo apt-get install $apt_venv" >&2
else
  echo "No Python 3.11, 3.12 or 3.13 among: $*" >&2
  echo "Install one of them, or name it:  make course PYTHON=/path/to/python3.12" >&2
fi
exit 1

/* Runs Python beside the page, so that the page stays alive whatever a reader writes. It
   is started from a text, behind that of live_unpack.js. */

let pyodide = null;

const BEGIN = `
import json, os, sys
sys.path.insert(0, "/course")
sys.path.insert(0, "/packages")
for name in os.listdir("/wheels"):
    import zipfile
    zipfile.ZipFile(f"/wheels/{name}").extractall("/packages")
from autograder.on_page import absent
there = os.listdir("/packages")
absent.stand_in(*(name for name in ("torch", "numpy") if name not in there))
from autograder.on_page import runner
`;
const JUDGE = "json.dumps(runner.judge(**json.loads(asked)))";

const TYPES = { wasm: "application/wasm", mjs: "text/javascript" };

/* Pyodide asks for its files by address; all are here already. */
const answers = (files) => async (wanted) => {
  const name = String(wanted.url ?? wanted).split("/").pop();
  if (!Object.hasOwn(files, name)) throw new TypeError(`There is no file ${name}.`);
  const type = TYPES[name.split(".").pop()] ?? "application/octet-stream";
  return new Response(files[name], { headers: { "Content-Type": type } });
};

/* Messages of Python belong to nobody but the check, which catches them. */
const unheard = () => {};

const begin = async ({ python, course, wheels }) => {
  const [files, modules] = await Promise.all([unpack(python), unpack(course)]);
  self.fetch = answers(files);
  self.importScripts = () => { // where it works, Pyodide refuses to start
    throw new TypeError("Modules are imported.");
  };
  const { loadPyodide } = await import(address(files["pyodide.mjs"]));
  const made = await import(address(files["pyodide.asm.mjs"]));
  pyodide = await loadPyodide({
    createPyodideModule: made.default,
    indexURL: "course:/",
    packageBaseUrl: "course:/",
    lockFileContents: new TextDecoder().decode(files["pyodide-lock.json"]),
    env: { COURSE_LOOK: "0" }, // a line to look at is searched for in a notebook only
    stdin: () => null,
    stdout: unheard,
    stderr: unheard,
  });
  for (const [path, content] of Object.entries(modules)) {
    const place = `/course/${path}`;
    pyodide.FS.mkdirTree(place.slice(0, place.lastIndexOf("/")));
    pyodide.FS.writeFile(place, content);
  }
  for (const folder of ["/wheels", "/packages"]) pyodide.FS.mkdirTree(folder);
  for (const [name, content] of Object.entries(wheels))
    pyodide.FS.writeFile(`/wheels/${name}`, new Uint8Array(content));
  pyodide.runPython(BEGIN);
};

const judge = async (asked) => {
  pyodide.globals.set("asked", JSON.stringify(asked));
  return JSON.parse(pyodide.runPython(JUDGE));
};

const calls = { begin, judge };

onmessage = async ({ data: { request, call, given } }) => {
  try {
    postMessage({ request, result: await calls[call](given) });
  } catch (error) {
    postMessage({ request, error: String(error?.message ?? error) });
  }
};

"""How much one submission may use before it is stopped."""

from dataclasses import dataclass

KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True)
class Limits:
    """The limits of one submission; an instructor may change each of them.

    Args:
        cell_seconds: wall-clock time of one cell.
        notebook_seconds: wall-clock time of all cells together.
        call_seconds: wall-clock time of one call that a check makes.
        cpu_seconds: processor time of the submission, over all its threads.
        memory_bytes: address space and resident memory beyond what the libraries take.
        threads: threads at any one time.
        open_files: file descriptors at any one time.
        file_bytes: size of the largest file.
        temporary_bytes: size of all files together.
        temporary_files: number of files and folders.
        output_bytes_cell: what one cell may print or draw; more is cut off.
        output_bytes: what all cells together may print or draw; more is cut off.
        message_bytes: the largest answer to a check.
    """

    cell_seconds: float = 30
    notebook_seconds: float = 300
    call_seconds: float = 15
    cpu_seconds: int = 240
    memory_bytes: int = 2 * GIB
    threads: int = 64
    open_files: int = 128
    file_bytes: int = 32 * MIB
    temporary_bytes: int = 64 * MIB
    temporary_files: int = 1000
    output_bytes_cell: int = 100_000
    output_bytes: int = 10_000_000
    message_bytes: int = 64 * MIB

"""How much one submission may use before it is stopped."""

from dataclasses import dataclass

KIB, MIB, GIB = 2**10, 2**20, 2**30
# why a submission was ended, where that is not its own doing
WALL = "its time on the wall was over"
TOO_LARGE = "it sent more than is allowed"
DEAF = "it could not be interrupted"


@dataclass(frozen=True)
class Limits:
    """The limits of one submission; an instructor may change each of them.

    Args:
        cell_seconds: time of one cell, less what others made it wait.
        notebook_seconds: the same, of all cells and calls together.
        call_seconds: the same, of one call that a check makes.
        wall_seconds: from the first cell to the last check by the clock on the wall,
            whatever it waits for. It is the only one that goes on while other programs
            have the processor.
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
        user: as whom a submission without a sandbox runs, by number; 0: as who grades.
    """

    cell_seconds: float = 30
    notebook_seconds: float = 300
    call_seconds: float = 3
    wall_seconds: float = 600
    cpu_seconds: int = 240
    memory_bytes: int = 2 * GIB
    threads: int = 64
    open_files: int = 128
    file_bytes: int = 32 * MIB
    temporary_bytes: int = 64 * MIB
    temporary_files: int = 1000
    output_bytes_cell: int = 100_000
    output_bytes: int = 10_000_000
    message_bytes: int = 8 * MIB
    user: int = 0

    def words(self, reason: str) -> str:
        """Say which limit a process has met that was ended for a reason, or nothing."""
        return {
            "memory": f"memory: at most {self.memory_bytes // MIB} MiB",
            "threads": f"threads: at most {self.threads}",
            "cpu time": f"processor time: at most {self.cpu_seconds:g} seconds",
            WALL: f"time on the wall: at most {self.wall_seconds:g} seconds",
            DEAF: "the time of a cell or a call, and could not be interrupted then",
            TOO_LARGE: f"an answer: at most {self.message_bytes // KIB} KiB",
        }.get(reason, "")

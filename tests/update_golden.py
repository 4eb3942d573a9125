"""Write tests/golden anew after a wanted change: ``python -m tests.update_golden``."""

from pathlib import Path

from autograder import generator

if __name__ == "__main__":
    golden = Path(__file__).parent / "golden"
    generator.write_exercises(golden)
    for chapter in generator.chapters(golden):
        folder = golden / "handout" / chapter
        generator.write_handout(chapter, folder, golden, agents=None)
        generator.write_nbgrader_source(chapter, golden / "source" / chapter, golden)

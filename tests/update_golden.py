"""Write tests/golden anew after a wanted change: ``python -m tests.update_golden``."""

from pathlib import Path

from autograder import generator

if __name__ == "__main__":
    golden = Path(__file__).parent / "golden"
    generator.write_exercises(golden)
    for chapter in generator.chapters(golden):
        generator.write_handout(chapter, golden / "handout" / chapter, golden)
        generator.write_nbgrader_source(chapter, golden / "source" / chapter, golden)

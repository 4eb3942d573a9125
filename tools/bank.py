"""List the exercises, the mistakes that their checks name, and how many there are."""

from tests import chapters


def main() -> None:
    """Print a block for each exercise, and the totals."""
    for chapter in chapters.CHAPTERS:
        source = chapters.source(chapter)
        print(f"\n{chapter}: {len(source.exercises)} exercises")
        for exercise in source.exercises:
            entries = [
                entry
                for entry in chapters.bank(chapter)
                if entry.exercise == exercise.name
            ]
            mistakes = dict.fromkeys(e.mistake for e in entries if e.mistake)
            variants = sum(entry.mistake is None for entry in entries)
            plural = "point" if exercise.points == 1 else "points"
            print(f"\n  {exercise.title} ({exercise.points} {plural})")
            if exercise.by_hand:
                print("    graded by hand")
                continue
            print(f"    {len(mistakes)} mistakes, {variants} correct variants")
            for mistake in mistakes:
                print(f"    - {mistake}")
    print(f"\n{chapters.count_bank()}")


if __name__ == "__main__":
    main()

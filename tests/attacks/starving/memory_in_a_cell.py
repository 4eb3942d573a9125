"""Asks for more memory than there is, piece by piece, and touches it all."""
# exercise: softmax
# where: answer
# status: any

kept = []
while True:
    kept.append(bytearray(b"x" * 50_000_000))

"""Catches every exception with a bare except in an endless loop, by accident."""
# exercise: softmax
# where: after
# status: ungraded
# reason: it could not be interrupted

while True:
    try:
        while True:
            sum(range(1000))
    except:
        pass

"""Is an object whose name is looked up for ever."""
# exercise: softmax
# where: answer
# limited: the value of softmax had not returned after


class Endless:
    def __call__(self, scores):
        return scores

    def __getattr__(self, name):
        while True:
            pass


softmax = Endless()

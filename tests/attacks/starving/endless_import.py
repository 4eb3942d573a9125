"""Makes every import of a later cell take for ever."""
# exercise: softmax
# where: answer
# status: any

import importlib
import sys


class Endless:
    def find_spec(self, *_):
        while True:
            pass


sys.meta_path.insert(0, Endless())
importlib.import_module("a_module_that_is_not_there")

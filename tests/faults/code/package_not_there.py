"""Imports a package that is not installed here."""
# exercise: softmax
# where: before

import transformers_made_easy

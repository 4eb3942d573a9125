"""Warns, logs, shows a progress bar and writes to stderr: right all the same."""
# exercise: softmax
# where: with

import logging
import sys
import warnings

from tqdm import tqdm

logging.basicConfig(level=logging.INFO)
right = softmax


def softmax(scores):
    warnings.warn("this function is deprecated")
    logging.info("a line of a log")
    for _ in tqdm(range(3)):
        pass
    print("debugging", file=sys.stderr)
    return right(scores)

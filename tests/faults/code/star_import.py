"""Imports everything from everywhere."""
# exercise: softmax
# where: before

from math import *

from torch import *
from torch.nn.functional import *

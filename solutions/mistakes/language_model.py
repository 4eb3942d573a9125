"""Wrong and right answers to the exercises of chapter 11; more in language_model_…"""

import math

from mistakes import (
    language_model_blocks as language_model_blocks,
)  # registers
from mistakes import language_model_cache as language_model_cache
from mistakes import language_model_documents as language_model_documents
from mistakes import language_model_inside as language_model_inside
from mistakes import language_model_kernels as language_model_kernels
from mistakes import language_model_own as language_model_own
from mistakes import right, wrong


@wrong("bits-per-byte", "characters in place of bytes")
def bits_per_byte(losses, text):
    """log2 of e"""
    return float(sum(losses)) * math.log2(math.e) / sum(1 for _ in text)


@wrong("bits-per-byte", "a mean in place of the sum")
def bits_per_byte(losses, text):
    return float(losses.mean()) / math.log(2)


@wrong("bits-per-byte", "probabilities multiplied in place of logarithms added")
def bits_per_byte(losses, text):
    """one probability of all"""
    return -math.log2(losses.neg().exp().prod()) / len(text.encode())


@wrong("bits-per-byte", "probabilities multiplied in place of logarithms added")
def bits_per_byte(losses, text):
    """a perplexity of the whole text"""
    return math.log2(math.exp(losses.double().sum())) / len(text.encode())


@right("bits-per-byte")
def bits_per_byte(losses, text):
    """the logarithm of each probability to the base 2"""
    bits = -losses.neg().exp().log2()
    return bits.sum().item() / len(bytes(text, "utf-8"))

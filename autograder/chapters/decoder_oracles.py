"""The models' oracles, by the name that decoder_writing knows them under."""

from autograder.chapters.decoder.oracles import torch_transformer, transformer_shapes

__all__ = ["torch_transformer", "transformer_shapes"]

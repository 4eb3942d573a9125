"""A language model of the parts that the exercises ask for: data, model, use."""

"""What models are trained on: texts, images, stories, and how they become batches."""

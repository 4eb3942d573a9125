"""Mounts a drive, as notebooks from Colab do."""
# exercise: softmax
# where: before

from google.colab import drive

drive.mount("/content/drive")

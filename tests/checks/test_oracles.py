"""Oracles that were written for a check agree with scikit-learn's functions."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import confusion_matrix
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import StandardScaler

from autograder.chapters.embeddings.weighting import by_definition
from autograder.chapters.vision.counting import counted
from autograder.chapters.vision.positions import similar
from autograder.chapters.vision.standardising import scaled
from autograder.chapters.vision_transformer.filters import by_covariance
from workbench.data import digits


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


def test_the_digits_are_scikit_learns() -> None:
    greys, labels = digits.load()
    theirs = load_digits()
    assert np.array_equal(greys[:, 0].numpy(), theirs.images)
    assert np.array_equal(labels.numpy(), theirs.target)


def test_images_are_scaled_as_there_and_a_channel_without_contrast_too() -> None:
    images, train = drawn(3, 2, 4, 5), 3 * drawn(6, 2, 4, 5) + 1
    images[:, 1] = train[:, 1] = 0.5
    scaler = StandardScaler().fit(train.movedim(1, -1).reshape(-1, 2))
    theirs = scaler.transform(images.movedim(1, -1).reshape(-1, 2))
    found = scaled(images, train).movedim(1, -1).reshape(-1, 2)
    assert np.allclose(found, theirs, atol=1e-5)


def test_classes_are_counted_as_there() -> None:
    labels, predictions = (drawn(2, 40) * 2).abs().long().clamp(max=4)
    theirs = confusion_matrix(labels, predictions, labels=range(6))
    assert np.array_equal(counted(predictions, labels, 6)[0], theirs)


def test_cosines_are_those_of_there() -> None:
    table = drawn(7, 4)
    theirs = cosine_similarity(table[1:].double())
    assert np.allclose(similar(table, 2, 3).reshape(6, 6), theirs, atol=1e-6)


def test_principal_components_are_those_of_there_but_for_their_sign() -> None:
    weight = drawn(8, 15)
    components, share = by_covariance(weight, 3, 2, 2)
    theirs = PCA(3).fit(weight.T.double())
    assert np.allclose(share, theirs.explained_variance_ratio_, atol=1e-5)
    products = components.flatten(1).numpy() @ theirs.components_.T
    assert np.allclose(np.abs(products), np.eye(3), atol=1e-4)


def test_tf_idf_is_that_of_there_without_its_additions() -> None:
    documents = [["a", "b", "a"], ["b", "c"], ["a", "b", "d", "d"]]
    found, terms = by_definition(documents)
    count = CountVectorizer(analyzer=list, vocabulary=terms).fit_transform(documents)
    weigh = TfidfTransformer(norm=None, smooth_idf=False).fit_transform(count)
    assert np.allclose(found, (weigh - count).toarray(), atol=1e-6)

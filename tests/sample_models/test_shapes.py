"""The shapes data set: seeded, and nothing but the outline tells the class."""

import cv2
import numpy as np
import pytest

from sample_models.shapes import CLASSES, draw_scene, generate


@pytest.fixture(scope="module")
def pictures():
    return generate(11, 1200)


def test_the_same_seed_gives_the_same_pictures_whatever_n_is():
    images, labels, masks = generate(3, 6)
    again, labels_again, masks_again = generate(3, 4)
    assert np.array_equal(images[:4], again)
    assert np.array_equal(labels[:4], labels_again)
    assert np.array_equal(masks[:4], masks_again)
    other, _, _ = generate(4, 4)
    assert not np.array_equal(again, other)


def test_shapes_and_types():
    images, labels, masks = generate(1, 3, size=48)
    assert (images.shape, images.dtype) == ((3, 48, 48, 3), np.uint8)
    assert (labels.shape, labels.dtype) == ((3,), np.int64)
    assert (masks.shape, masks.dtype) == ((3, 48, 48), np.bool_)


def test_every_class_occurs_about_equally(pictures):
    _, labels, _ = pictures
    assert np.bincount(labels, minlength=len(CLASSES)).min() > 240  # 300 expected of each


def test_the_object_differs_from_its_surroundings_and_lies_whole_inside(pictures):
    images, _, masks = pictures
    for image, mask in zip(images[:100], masks[:100], strict=True):
        assert not (mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any())
        ring = cv2.dilate(mask.astype(np.uint8), np.ones((7, 7), np.uint8)).astype(bool) & ~mask
        # The median is the ground's even where a line passes.
        assert np.linalg.norm(np.median(image[mask], axis=0) - np.median(image[ring], axis=0)) > 50


def test_a_wide_scene_keeps_the_object_in_the_central_square():
    for seed in range(60):
        _, mask = draw_scene(np.random.default_rng(seed), seed % 4, 64, 128)
        columns = np.flatnonzero(mask.any(axis=0))
        assert columns.min() >= 32 and columns.max() < 96


def test_an_outline_has_the_corners_of_its_class():
    # Drawn large, the outline's own corner count tells the class to OpenCV.
    for label, corners in ((1, 4), (2, 3), (3, 10)):
        _, mask = draw_scene(np.random.default_rng(5), label, 512, 512)
        contour = max(cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0], key=len)
        assert len(cv2.approxPolyDP(contour, 0.02 * cv2.arcLength(contour, True), True)) == corners


def _nearest_mean_accuracy(features, labels):
    """Accuracy on the second half of a linear classifier fitted by least squares to the first half."""
    half = len(features) // 2
    scaled = (features - features[:half].mean(0)) / features[:half].std(0)
    columns = np.column_stack([scaled, scaled**2, np.ones(len(scaled))])
    weights, *_ = np.linalg.lstsq(columns[:half], np.eye(4)[labels[:half]], rcond=None)
    return float((np.argmax(columns[half:] @ weights, axis=1) == labels[half:]).mean())


def test_neither_colour_nor_area_nor_place_tells_the_class(pictures):
    images, labels, masks = pictures
    whole = images.reshape(len(images), -1, 3).mean(axis=1)
    inside = np.stack([image[mask].mean(axis=0) for image, mask in zip(images, masks, strict=True)])
    area = masks.mean(axis=(1, 2))[:, None]
    place = np.stack([np.argwhere(mask).mean(axis=0) for mask in masks])
    # 600 pictures: the standard error at chance is 0.018.
    assert _nearest_mean_accuracy(whole, labels) < 0.33
    assert _nearest_mean_accuracy(inside, labels) < 0.33
    assert _nearest_mean_accuracy(np.column_stack([area, place]), labels) < 0.33


def test_the_outline_does_tell_the_class(pictures):
    # The quiet twin: the same classifier, given how wide the object is for its area, is far above chance.
    _, labels, masks = pictures
    spread = []
    for mask in masks:
        points = np.argwhere(mask) - np.argwhere(mask).mean(axis=0)
        distance = np.linalg.norm(points, axis=1) / np.sqrt(mask.sum())
        spread.append([distance.max(), distance.std()])
    assert _nearest_mean_accuracy(np.array(spread), labels) > 0.6

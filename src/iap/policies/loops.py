"""The loops of a policy's step, compiled.

Each does what a handful of array operations would. Between two steps the environment fills the caches with its own, and
then every operation that comes by costs several times what it does when repeated: fewer of them act sooner.
"""

import math

import numpy as np
from numba import njit

MOMENTS = 6  # a head: centroid (2), second moments about it (3), mass (1)


@njit(error_model="numpy", cache=True)
def changes(image, before):
    """By how much each number of an image is above or below that of another."""
    changed = np.empty_like(image)
    now, then, out = image.ravel(), before.ravel(), changed.ravel()
    for i in range(len(now)):
        out[i] = max(now[i], then[i]) - min(now[i], then[i])
    return changed


@njit(error_model="numpy", cache=True)
def pool_patches(image, chosen, shares, patch, stride, centres, scale, shift, weights, biases):
    """Each head weighs the chosen patches by relu(weight·(mean colour, centre) + bias), and sums up where they lie.

    A mean colour is scale·(the sum of a patch's pixels) + shift, and a patch counts by its share. All in float64, so
    that moments about the centroid lose no digits.
    """
    columns = (image.shape[1] - patch) // stride + 1
    heads, channels = len(weights), image.shape[2]
    sums = np.zeros((heads, MOMENTS))
    colour = np.empty(channels)
    for i in range(len(chosen)):
        index = chosen[i]
        top, left = index // columns * stride, index % columns * stride
        colour[:] = 0.0
        for y in range(top, top + patch):
            for x in range(left, left + patch):
                for c in range(channels):
                    colour[c] += image[y, x, c]
        row, column = centres[index]
        for head in range(heads):
            weight = biases[head]
            for c in range(channels):
                weight += weights[head, c] * (scale * colour[c] + shift)
            weight += weights[head, channels] * row + weights[head, channels + 1] * column
            weight *= shares[i]
            if weight > 0:
                sums[head, 0] += weight * row
                sums[head, 1] += weight * column
                sums[head, 2] += weight * row * row
                sums[head, 3] += weight * row * column
                sums[head, 4] += weight * column * column
                sums[head, 5] += weight
    readout = np.zeros(heads * MOMENTS, np.float32)
    for head in range(heads):
        mass = sums[head, 5]
        if mass > 0:
            row, column = sums[head, 0] / mass, sums[head, 1] / mass
            out = readout[head * MOMENTS : (head + 1) * MOMENTS]
            out[0], out[1] = row, column
            out[2] = sums[head, 2] / mass - row * row
            out[3] = sums[head, 3] / mass - row * column
            out[4] = sums[head, 4] / mass - column * column
            out[5] = mass / np.sum(shares)
    return readout


@njit(error_model="numpy", cache=True)
def above_least(scores, chosen):
    """How far above the least of the chosen scores each of them lies, in float64; all 1 if none does."""
    kept = scores[chosen].astype(np.float64)
    least, most = np.min(kept), np.max(kept)
    return (kept - least) / (most - least) if most > least else np.ones(len(chosen))


@njit(error_model="numpy", cache=True)
def fill_features(readout, before, features):
    """Fill `features` with the readout, then its differences to those before, then zeros where there is none yet."""
    size = len(readout)
    features[:size] = readout
    features[size:] = 0
    for i in range(len(before)):
        for j in range(size):
            features[(i + 1) * size + j] = readout[j] - before[i, j]


@njit(error_model="numpy", cache=True)
def normalise(x, mean, scale, clip):
    """(x − mean)·scale, clipped to ±clip, as float32; NaN stays NaN."""
    normal = np.empty(len(x), np.float32)
    for i in range(len(x)):
        value = (x[i] - mean[i]) * scale[i]
        if value > clip:
            value = clip
        elif value < -clip:
            value = -clip
        normal[i] = value
    return normal


@njit(error_model="numpy", cache=True)
def receive(features, sensors, mean, scale, clip):
    """Features and sensors as one vector, and the same normalised."""
    inputs = np.empty(len(features) + len(sensors), np.float32)
    inputs[: len(features)] = features
    inputs[len(features) :] = sensors
    return inputs, normalise(inputs, mean, scale, clip)


@njit(error_model="numpy", cache=True)
def flipped(image):
    """An image with left and right exchanged."""
    out = np.empty_like(image)
    rows, columns, channels = image.shape
    for y in range(rows):
        for x in range(columns):
            for c in range(channels):
                out[y, x, c] = image[y, columns - 1 - x, c]
    return out


@njit(error_model="numpy", cache=True)
def in_mirror(x, places, signs, offsets):
    """A vector in the mirror: numbers change places, signs, and what they are counted from."""
    out = np.empty(len(places), np.float32)
    for i in range(len(places)):
        out[i] = x[places[i]] * signs[i] + offsets[i]
    return out


@njit(error_model="numpy", cache=True)
def mean_with_mirrored(here, there, places, signs):
    """The mean of a vector and of the mirror image of another."""
    out = np.empty(len(here), np.float32)
    for i in range(len(here)):
        out[i] = (here[i] + there[places[i]] * signs[i]) / 2
    return out


@njit(error_model="numpy", cache=True)
def in_turns(here, there, columns):
    """Patches chosen in this world and in the mirrored one, in turns and in this one's places, each once."""
    out = np.empty(len(here) + len(there), np.int64)
    count = 0
    for i in range(len(out)):
        index = here[i // 2] if i % 2 == 0 else there[i // 2]
        if i % 2 == 1:
            index += columns - 1 - 2 * (index % columns)
        if index not in out[:count]:
            out[count] = index
            count += 1
    return out[:count]


@njit(fastmath={"contract", "reassoc"}, error_model="numpy", cache=True)
def tanh_layer(weight, bias, x):
    """tanh(weight·x + bias)."""
    out = np.empty(len(bias), np.float32)
    for i in range(len(out)):
        total = np.float32(0)
        for j in range(len(x)):
            total += weight[i, j] * x[j]
        out[i] = math.tanh(total + bias[i])
    return out


@njit(error_model="numpy", cache=True)
def follow(before, features, sensors, mean, scale, clip, command, weight, bias):
    """A step under a command: what is received with the features of before, and what a layer makes of the rest."""
    inputs, normal = receive(before[:features], sensors, mean, scale, clip)
    x = np.empty(len(command) + len(sensors), np.float32)
    x[: len(command)] = command
    x[len(command) :] = normal[features:]
    return inputs, tanh_layer(weight, bias, x)

"""The loops of a policy's step, compiled.

Each does what a handful of array operations would. Between two steps the environment fills the caches with its own, and
then every operation that comes by costs several times what it does when repeated: fewer of them act sooner.
"""

import math

import numpy as np

from iap._compile import compiled
from iap.attention.kernels.ranker import score_image
from iap.attention.kernels.top_k import best_first

MOMENTS = 6  # a head: centroid (2), second moments about it (3), mass (1)


@compiled
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


@compiled
def above_least(scores, chosen):
    """How far above the least of the chosen scores each of them lies, in float64; all 1 if none does."""
    kept = scores[chosen].astype(np.float64)
    least, most = np.min(kept), np.max(kept)
    return (kept - least) / (most - least) if most > least else np.ones(len(chosen))


@compiled
def glance(image, ranking, top_k, soft, pooling):
    """All that becomes of an image: the readout, the scores of all patches, and the patches chosen, best first."""
    patch, stride = ranking.projection.patch, ranking.projection.stride
    scores = score_image(ranking, image)
    chosen = best_first(scores, top_k)
    shares = above_least(scores, chosen) if soft else np.ones(top_k)
    _, _, centres, scale, shift, head_weights, head_biases = pooling
    readout = pool_patches(image, chosen, shares, patch, stride, centres, scale, shift, head_weights, head_biases)
    return readout, scores, chosen


@compiled
def fill_features(readout, before, features):
    """Fill `features` with the readout, then its differences to those before, then zeros where there is none yet."""
    size = len(readout)
    features[:size] = readout
    features[size:] = 0
    for i in range(len(before)):
        for j in range(size):
            features[(i + 1) * size + j] = readout[j] - before[i, j]


@compiled
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


@compiled
def receive(features, sensors, mean, scale, clip):
    """Features and sensors as one vector, and the same normalised."""
    inputs = np.empty(len(features) + len(sensors), np.float32)
    inputs[: len(features)] = features
    inputs[len(features) :] = sensors
    return inputs, normalise(inputs, mean, scale, clip)


@compiled(fastmath={"contract", "reassoc"})
def tanh_layer(weight, bias, x):
    """tanh(weight·x + bias)."""
    out = np.empty(len(bias), np.float32)
    for i in range(len(out)):
        total = np.float32(0)
        for j in range(len(x)):
            total += weight[i, j] * x[j]
        out[i] = math.tanh(total + bias[i])
    return out


@compiled
def with_products(x):
    """The numbers, then the product of each two of them: x₀x₀, x₀x₁ and so on."""
    count = len(x)
    out = np.empty(count + count * (count + 1) // 2, np.float32)
    out[:count] = x
    place = count
    for i in range(count):
        for j in range(i, count):
            out[place] = x[i] * x[j]
            place += 1
    return out


@compiled
def obey(command, sensors, weight, bias):
    """What a layer makes of a command and the normalised sensors."""
    x = np.empty(len(command) + len(sensors), np.float32)
    x[: len(command)] = command
    x[len(command) :] = sensors
    return tanh_layer(weight, bias, x)


@compiled
def follow(before, features, sensors, mean, scale, clip, command, weight, bias):
    """A step under a command: what is received with the features of before, and what a layer makes of the rest."""
    inputs, normal = receive(before[:features], sensors, mean, scale, clip)
    return inputs, obey(command, normal[features:], weight, bias)


@compiled
def command(features, sensors, normaliser, levels):
    """A step with a new command: what is received, the command, for how many steps it holds, and the action.

    `levels` are two layers; the last number that the high one gives tells how long, as in `levels.command_of`.
    """
    mean, scale, clip = normaliser
    high_inputs, high_weight, high_bias, max_command_steps, low_weight, low_bias = levels
    inputs, normal = receive(features, sensors, mean, scale, clip)
    outputs = tanh_layer(high_weight, high_bias, normal[:high_inputs])
    latent, share = outputs[:-1].copy(), (np.float64(outputs[-1]) + 1) / 2
    action = obey(latent, normal[len(features) :], low_weight, low_bias)
    return inputs, latent, 1 + round(share * (max_command_steps - 1)), action

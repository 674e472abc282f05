"""The loops of a step in two worlds, this one and the mirrored one, compiled."""

import numpy as np

from iap._compile import compiled
from iap.policies.kernels import command, follow, glance


@compiled
def flipped(image):
    """An image with left and right exchanged."""
    out = np.empty_like(image)
    rows, columns, channels = image.shape
    for y in range(rows):
        for x in range(columns):
            for c in range(channels):
                out[y, x, c] = image[y, columns - 1 - x, c]
    return out


@compiled
def in_mirror(x, places, signs, offsets):
    """A vector in the mirror: numbers change places, signs, and what they are counted from."""
    out = np.empty(len(places), np.float32)
    for i in range(len(places)):
        out[i] = x[places[i]] * signs[i] + offsets[i]
    return out


@compiled
def mean_with_mirrored(here, there, places, signs):
    """The mean of a vector and of the mirror image of another."""
    out = np.empty(len(here), np.float32)
    for i in range(len(here)):
        out[i] = (here[i] + there[places[i]] * signs[i]) / 2
    return out


@compiled
def sum_with_mirrored(here, there, columns):
    """The scores of both worlds together, in this one's places."""
    out = np.empty_like(here)
    for start in range(0, len(here), columns):
        for i in range(columns):
            out[start + i] = here[start + i] + there[start + columns - 1 - i]
    return out


@compiled
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


@compiled
def follow_both(here, there, latent, latent_there, sensors, features, normaliser, low, mirror):
    """`follow` in both worlds: what is received in each, and the one action."""
    (mean, scale, clip), (weight, bias) = normaliser, low
    places, signs, offsets, action_places, action_signs = mirror
    inputs, action = follow(here, features, sensors, mean, scale, clip, latent, weight, bias)
    felt = in_mirror(sensors, places, signs, offsets)
    inputs_there, action_there = follow(there, features, felt, mean, scale, clip, latent_there, weight, bias)
    return inputs, inputs_there, mean_with_mirrored(action, action_there, action_places, action_signs)


@compiled
def look_both(seen, sensors, normaliser, levels, mirror):
    """`glance` and `command` in both worlds.

    What is received in each, the command in each, for how many steps both hold, the one action, and the attention of
    both: their scores together, and what is chosen in one or the other.
    """
    image, ranking, top_k, soft, pooling = seen
    places, signs, offsets, action_places, action_signs = mirror
    readout, scores, chosen = glance(image, ranking, top_k, soft, pooling)
    inputs, latent, hold, action = command(readout, sensors, normaliser, levels)
    readout_there, scores_there, chosen_there = glance(flipped(image), ranking, top_k, soft, pooling)
    felt = in_mirror(sensors, places, signs, offsets)
    inputs_there, latent_there, hold_there, action_there = command(readout_there, felt, normaliser, levels)
    both = mean_with_mirrored(action, action_there, action_places, action_signs)
    columns = ranking.projection.column_shares.shape[1]  # of patches: there is a share of each
    scores, chosen = sum_with_mirrored(scores, scores_there, columns), in_turns(chosen, chosen_there, columns)
    return inputs, inputs_there, latent, latent_there, (hold + hold_there) // 2, both, scores, chosen

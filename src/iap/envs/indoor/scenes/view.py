"""Images of a scene from one camera of a model: only the pieces that it can see are rendered."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float32, Int, UInt8

from iap.envs.indoor.scenes.folder import SEGMENTS
from iap.envs.indoor.scenes.model import HIDDEN_GROUP, PIECE, SHOWN_GROUP, Pieces
from iap.envs.indoor.scenes.visibility import Visibility, in_frustum
from iap.envs.rendering.camera import Camera, load_mujoco


class SceneView:
    """The images of one camera."""

    def __init__(
        self, model: Any, pieces: Pieces, visibility: Visibility | None, size: tuple[int, int], number: int
    ) -> None:
        """Camera `number` of the model, at `size` = (height, width).

        Args:
            model: the `mujoco.MjModel`; the groups of its geoms are changed.
            pieces: of the scene in the model.
            visibility: what can be seen from each place; without it, only what is outside the frustum is left out.
            size: of the images.
            number: of the camera in the model.
        """
        mujoco = load_mujoco()
        self._model, self._pieces, self._visibility, self._number = model, pieces, visibility, number
        count = len(pieces.segments)
        first = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, f"{PIECE}0")
        self._groups = model.geom_group[first : first + count]
        self._inside = np.zeros(count, np.bool_)
        self._slope_y = math.tan(math.radians(float(model.cam_fovy[number])) / 2)
        self._slope_x = self._slope_y * size[1] / size[0]
        self._segment_of = np.full(model.ngeom + 1, SEGMENTS.index("robot"))
        self._segment_of[-1] = SEGMENTS.index("outside")  # geom −1
        self._segment_of[first : first + count] = pieces.segments
        self._camera = Camera(model, size, number, groups=(SHOWN_GROUP,))

    def image(self, data: Any) -> UInt8[np.ndarray, "H W 3"]:
        """The colours."""
        self._select(data)
        return self._camera.render(data)

    def depth(self, data: Any) -> Float32[np.ndarray, "H W"]:
        """The distances along the camera's axis, in metres."""
        self._select(data)
        return self._camera.depth(data)

    def segments(self, data: Any) -> Int[np.ndarray, "H W"]:
        """The class of each pixel, as an index of `SEGMENTS`."""
        self._select(data)
        return self._segment_of[self._camera.geoms(data)]

    def show_from_above(self) -> None:
        """Enable all pieces but ceilings, for a picture from above by another camera."""
        self._groups[:] = np.where(self._pieces.segments == SEGMENTS.index("ceiling"), HIDDEN_GROUP, SHOWN_GROUP)

    def close(self) -> None:
        """Free the camera."""
        self._camera.close()

    def _select(self, data: Any) -> None:
        """Enable the pieces that the camera may see."""
        eye, axes = data.cam_xpos[self._number], data.cam_xmat[self._number].reshape(3, 3)
        in_frustum(self._pieces.centre_m, self._pieces.half_m, eye, axes, self._slope_x, self._slope_y, self._inside)
        shown = self._inside
        if self._visibility is not None:
            known = self._visibility.seen_from(eye[0], eye[1])
            shown = shown if known is None else shown & known
        self._groups[:] = np.where(shown, SHOWN_GROUP, HIDDEN_GROUP)

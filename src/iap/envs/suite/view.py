"""The camera of a task: its image, before a sky that is drawn once an episode where that is exact; and its masks."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from iap.envs.camera import Camera
from iap.envs.suite.background import GROUND_MATERIAL, BackgroundDistraction

SEGMENTS = ("background", "floor", "robot")
BACKGROUND, FLOOR, ROBOT = range(3)


class Sky(NamedTuple):
    """The sky alone: a box around the camera that hides what is farther, such as a wide floor."""

    pixels: UInt8[np.ndarray, "H W 3"]
    nearness: Float32[np.ndarray, "H W"]


class View(Camera):
    """A camera that keeps the sky as long as it looks the same way.

    The sky costs more than all the rest, and depends on nothing but the direction of the camera and the texture. If
    both are as in the frame before, it is drawn alone, once, and put behind the next frames where nothing else is.
    That is the same image, to the bit, unless something is translucent: then every frame is drawn in full.
    """

    def __init__(
        self,
        model: Any,
        size: tuple[int, int],
        number: int = 0,
        *,
        fast: bool = True,
        background: BackgroundDistraction | None = None,
    ) -> None:
        """Camera `number` of the model at `size`, before its own sky or a background."""
        super().__init__(model, size, number, fast=fast)
        self._background, self._uploaded = background, 0
        self._number = number
        self._exact = fast  # where edges are smoothed, they hold some of the sky
        self._nearness = np.empty(size, np.float32)
        self._context.readDepthMap = self._mujoco.mjtDepthMap.mjDEPTH_ZEROFAR.value
        self.begin()

    def begin(self) -> None:
        """Forget the sky: an episode may have another one."""
        self._direction: bytes | None = None
        self._sky: Sky | None = None
        self.upload_terrain()

    def look(self, data: Any) -> UInt8[np.ndarray, "H W 3"]:
        """The image of the model in the state of `data`."""
        self._upload_background()
        sky = self._kept_sky(data)
        if sky is None:
            return super().look(data)
        self._scene.flags[self._mujoco.mjtRndFlag.mjRND_SKYBOX] = False
        self._draw(data, self._pixels, self._nearness)
        self._scene.flags[self._mujoco.mjtRndFlag.mjRND_SKYBOX] = True
        image, before = sky.pixels.copy(), (self._nearness >= sky.nearness)[::-1]
        for channel in range(3):  # one mask for all three at once takes twenty times as long
            np.copyto(image[..., channel], self._pixels[::-1, :, channel], where=before)
        return image

    def masks(self, data: Any) -> UInt8[np.ndarray, "H W"]:
        """What each pixel shows: `BACKGROUND`, `FLOOR`, or `ROBOT`, which is all the rest."""
        with self._segmented():
            self._draw(data, self._pixels, None)
        labels = np.full(self._scene.ngeom + 1, ROBOT, np.uint8)
        labels[0] = BACKGROUND
        floors = self._floors()
        for shape in self._scene.geoms[: self._scene.ngeom]:
            if shape.objtype == self._mujoco.mjtObj.mjOBJ_GEOM and shape.objid in floors:
                labels[shape.segid + 1] = FLOOR
        return labels[self._pixels[::-1].astype(np.int64) @ [1, 1 << 8, 1 << 16]]

    def _upload_background(self) -> None:
        if self._background is not None and self._background.version != self._uploaded:
            self._make_current()
            self._mujoco.mjr_uploadTexture(self._model, self._context, self._background.texture)
            self._uploaded = self._background.version
            self._direction = self._sky = None

    def _kept_sky(self, data: Any) -> Sky | None:
        """The sky alone, if it may be put behind this frame."""
        if not self._exact:
            return None
        direction = data.cam_xmat[self._number].tobytes()
        if direction != self._direction:
            self._direction, self._sky = direction, None
            return None
        if self._sky is None and self._is_opaque():
            nothing = 0
            self._draw(data, self._pixels, self._nearness, categories=nothing)
            self._sky = Sky(self._pixels[::-1].copy(), self._nearness.copy())
        return self._sky

    def _is_opaque(self) -> bool:
        """Whether nothing that the frame before has shown lets the sky through."""
        return self._scene.nskin == 0 and all(shape.rgba[3] == 1 for shape in self._scene.geoms[: self._scene.ngeom])

    def _floors(self) -> set[int]:
        mujoco, model = self._mujoco, self._model
        ground = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_MATERIAL.value, GROUND_MATERIAL)
        is_flat = np.isin(model.geom_type, [mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD])
        return set(np.flatnonzero(is_flat & (model.geom_matid == ground)).tolist())

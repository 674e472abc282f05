"""The camera of a task: its image, before what is drawn once an episode where that is exact; and its masks."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from iap.envs.control_suite.distractions.background import GROUND_MATERIAL, BackgroundDistraction
from iap.envs.rendering.camera import Camera

SEGMENTS = ("background", "floor", "robot")
BACKGROUND, FLOOR, ROBOT = range(3)


class Backdrop(NamedTuple):
    """What is drawn once: the sky, a box around the camera that hides what is farther; and what rests, if all does.

    Attributes:
        pixels: its image.
        nearness: of what hides what is behind it.
        veil: of what tints what is behind it; 0 where nothing does.
        others: the categories of shapes that are drawn before it in every frame.
    """

    pixels: UInt8[np.ndarray, "H W 3"]
    nearness: Float32[np.ndarray, "H W"]
    veil: Float32[np.ndarray, "H W"] | None
    others: int


class View(Camera):
    """A camera that draws what stays the same once.

    The sky costs more than all the rest, and depends on nothing but the direction of the camera and the texture. Where
    camera and lights rest, all that is fixed to the world stays the same too. What is as it was in the frame before is
    drawn alone, once, and put behind the next frames where nothing else is. That is the same image, to the bit, unless
    something translucent would have to be mixed: then the frame is drawn in full.
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
        self._rests = self._camera_and_lights_rest()
        self._fixed_geoms = np.flatnonzero(model.body_weldid[model.geom_bodyid] == 0)
        self._fixed_sites = np.flatnonzero(model.body_weldid[model.site_bodyid] == 0)
        self._nearness = np.empty(size, np.float32)
        self._context.readDepthMap = self._mujoco.mjtDepthMap.mjDEPTH_ZEROFAR.value
        self.begin()

    def begin(self) -> None:
        """Forget the backdrop: an episode may have another one."""
        self._setting: bytes | None = None
        self._backdrop: Backdrop | None = None
        self.upload_terrain()

    def look(self, data: Any) -> UInt8[np.ndarray, "H W 3"]:
        """The image of the model in the state of `data`."""
        self._upload_background()
        backdrop = self._kept_backdrop(data)
        if backdrop is None:
            return super().look(data)
        self._draw_without_sky(data, backdrop.others)
        before = self._nearness >= backdrop.nearness
        if backdrop.veil is not None and np.any(before & (self._nearness < backdrop.veil)):
            return super().look(data)
        image, before = backdrop.pixels.copy(), before[::-1]
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
            self._setting = self._backdrop = None

    def _kept_backdrop(self, data: Any) -> Backdrop | None:
        """What may be put behind this frame: it is drawn when it was the same in the frame before."""
        if not self._exact:
            return None
        setting = self._setting_in(data)
        if setting != self._setting:
            self._setting, self._backdrop = setting, None
            return None
        if self._backdrop is None and (self._rests or self._is_opaque()):
            self._backdrop = self._drawn_backdrop(data)
        return self._backdrop

    def _setting_in(self, data: Any) -> bytes:
        """All that the backdrop depends on."""
        direction = data.cam_xmat[self._number].tobytes()
        if not self._rests:
            return direction
        places = data.cam_xpos[self._number], data.geom_xpos[self._fixed_geoms], data.site_xpos[self._fixed_sites]
        return direction + b"".join(part.tobytes() for part in (*places, self._model.mat_rgba, self._model.geom_rgba))

    def _drawn_backdrop(self, data: Any) -> Backdrop | None:
        """The sky alone; or with all that is fixed, unless something before it is translucent."""
        categories = self._mujoco.mjtCatBit
        drawn = categories.mjCAT_STATIC.value if self._rests else 0
        others = categories.mjCAT_ALL.value & ~drawn
        veil = None
        if self._rests:
            with self._segmented():  # in which all is opaque
                self._draw_without_sky(data, drawn)
            veil = self._nearness.copy()
            self._draw_without_sky(data, others)
            if not self._is_opaque():
                return None
        self._draw(data, self._pixels, self._nearness, categories=drawn)
        return Backdrop(self._pixels[::-1].copy(), self._nearness.copy(), veil, others)

    def _draw_without_sky(self, data: Any, categories: int) -> None:
        sky = self._mujoco.mjtRndFlag.mjRND_SKYBOX
        self._scene.flags[sky] = False
        self._draw(data, self._pixels, self._nearness, categories=categories)
        self._scene.flags[sky] = True

    def _is_opaque(self) -> bool:
        """Whether nothing that was drawn last lets through what is behind it."""
        return self._scene.nskin == 0 and all(shape.rgba[3] == 1 for shape in self._scene.geoms[: self._scene.ngeom])

    def _camera_and_lights_rest(self) -> bool:
        mujoco, model = self._mujoco, self._model
        camera = model.cam_mode[self._number] == mujoco.mjtCamLight.mjCAMLIGHT_FIXED
        lights = (model.light_mode == mujoco.mjtCamLight.mjCAMLIGHT_FIXED).all()
        bodies = np.append(model.light_bodyid, model.cam_bodyid[self._number])
        return bool(camera and lights and not model.body_weldid[bodies].any())

    def _floors(self) -> set[int]:
        mujoco, model = self._mujoco, self._model
        ground = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_MATERIAL.value, GROUND_MATERIAL)
        is_flat = np.isin(model.geom_type, [mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD])
        return set(np.flatnonzero(is_flat & (model.geom_matid == ground)).tolist())

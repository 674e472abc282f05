"""The camera of a task: images whose static part is rendered once per episode, and segmentation."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from iap.envs.control_suite.distractions.background import GROUND_MATERIAL, BackgroundDistraction
from iap.envs.rendering.camera import Camera

SEGMENTS = ("background", "floor", "robot")
BACKGROUND, FLOOR, ROBOT = range(3)


class Backdrop(NamedTuple):
    """The part of the scene that is rendered once: the sky, and static geoms if camera and lights are static.

    Attributes:
        pixels: its image.
        nearness: its depth buffer, larger for nearer surfaces.
        translucent: the nearness of surfaces that tint what is behind them, 0 elsewhere; None if there are none.
        others: the categories of geoms that are rendered in front of it in every frame.
    """

    pixels: UInt8[np.ndarray, "H W 3"]
    nearness: Float32[np.ndarray, "H W"]
    translucent: Float32[np.ndarray, "H W"] | None
    others: int


class View(Camera):
    """A camera that renders static parts of the scene once.

    The sky takes more time than everything else, and depends only on the camera's orientation and the texture. If the
    camera and the lights are static, all geoms that are fixed to the world are static, too. These parts are rendered
    once if they are unchanged since the previous frame, and are then copied to all pixels where nothing else is nearer.
    The result is bit-equal to a full render. Frames in which a moving geom is behind a translucent one are rendered in
    full.
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
        """Camera `number` of the model at `size`, with the model's own sky or a background."""
        super().__init__(model, size, number, fast=fast)
        self._background, self._uploaded = background, 0
        self._number = number
        self._uses_backdrop = fast  # anti-aliased edges blend with the sky
        self._is_static = self._camera_and_lights_are_static()
        self._static_geoms = np.flatnonzero(model.body_weldid[model.geom_bodyid] == 0)
        self._static_sites = np.flatnonzero(model.body_weldid[model.site_bodyid] == 0)
        self._nearness = np.empty(size, np.float32)
        self._context.readDepthMap = self._mujoco.mjtDepthMap.mjDEPTH_ZEROFAR.value
        self.reset()

    def reset(self) -> None:
        """Discard the backdrop: a new episode may have another one."""
        self._setting: bytes | None = None
        self._backdrop: Backdrop | None = None
        self.upload_terrain()

    def render(self, data: Any) -> UInt8[np.ndarray, "H W 3"]:
        """The image of the model in the state of `data`."""
        self._upload_background()
        backdrop = self._current_backdrop(data)
        if backdrop is None:
            return super().render(data)
        self._draw_without_sky(data, backdrop.others)
        in_front = self._nearness >= backdrop.nearness
        if backdrop.translucent is not None and np.any(in_front & (self._nearness < backdrop.translucent)):
            return super().render(data)
        image, in_front = backdrop.pixels.copy(), in_front[::-1]
        for channel in range(3):  # twenty times as fast as one mask for all channels
            np.copyto(image[..., channel], self._pixels[::-1, :, channel], where=in_front)
        return image

    def segmentation(self, data: Any) -> UInt8[np.ndarray, "H W"]:
        """The class of each pixel: `BACKGROUND`, `FLOOR`, or `ROBOT` for everything else."""
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

    def _current_backdrop(self, data: Any) -> Backdrop | None:
        """The backdrop of this frame; it is rendered at the second frame with the same setting."""
        if not self._uses_backdrop:
            return None
        setting = self._setting_in(data)
        if setting != self._setting:
            self._setting, self._backdrop = setting, None
            return None
        if self._backdrop is None and (self._is_static or self._is_opaque()):
            self._backdrop = self._render_backdrop(data)
        return self._backdrop

    def _setting_in(self, data: Any) -> bytes:
        """Everything that the backdrop depends on."""
        direction = data.cam_xmat[self._number].tobytes()
        if not self._is_static:
            return direction
        positions = data.cam_xpos[self._number], data.geom_xpos[self._static_geoms], data.site_xpos[self._static_sites]
        colours = self._model.mat_rgba, self._model.geom_rgba
        return direction + b"".join(part.tobytes() for part in (*positions, *colours))

    def _render_backdrop(self, data: Any) -> Backdrop | None:
        """The sky alone, or with all static geoms; None if a moving geom is translucent."""
        categories = self._mujoco.mjtCatBit
        drawn = categories.mjCAT_STATIC.value if self._is_static else 0
        others = categories.mjCAT_ALL.value & ~drawn
        translucent = None
        if self._is_static:
            with self._segmented():  # which renders translucent geoms as opaque
                self._draw_without_sky(data, drawn)
            translucent = self._nearness.copy()
            self._draw_without_sky(data, others)
            if not self._is_opaque():
                return None
        self._draw(data, self._pixels, self._nearness, categories=drawn)
        return Backdrop(self._pixels[::-1].copy(), self._nearness.copy(), translucent, others)

    def _draw_without_sky(self, data: Any, categories: int) -> None:
        sky = self._mujoco.mjtRndFlag.mjRND_SKYBOX
        self._scene.flags[sky] = False
        self._draw(data, self._pixels, self._nearness, categories=categories)
        self._scene.flags[sky] = True

    def _is_opaque(self) -> bool:
        """Whether all geoms of the last render are opaque."""
        return self._scene.nskin == 0 and all(shape.rgba[3] == 1 for shape in self._scene.geoms[: self._scene.ngeom])

    def _camera_and_lights_are_static(self) -> bool:
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

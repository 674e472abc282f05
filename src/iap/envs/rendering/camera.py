"""Off-screen rendering of a camera of a MuJoCo model, optimised for a CPU."""

import atexit
import contextlib
import math
import os
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

from iap.envs.rendering.gl import RenderingError, choose_backend, explained, keep_triton_out

SLICES, STACKS = 12, 6  # of round bodies; more make no difference at the size of a policy's image
MAX_GEOMS = 10_000

_open_cameras: weakref.WeakSet["Camera"] = weakref.WeakSet()


class Camera:
    """Images of one camera of a model, without reflections and by default without shadows, which take most of the time.

    Each camera has its own OpenGL context, and a process may have several cameras. MuJoCo renders into, and frees
    resources of, the current context. Every method therefore makes its own context current first: otherwise closing one
    camera deletes the textures of another one, whose images are then wrong without an error.
    """

    _gl: Any = None
    _context: Any = None

    def __init__(
        self,
        model: Any,
        size: tuple[int, int],
        number: int = 0,
        *,
        fast: bool = True,
        shadows: bool = False,
        groups: Sequence[int] | None = None,
    ) -> None:
        """Camera `number` of the model, at `size` = (height, width).

        Args:
            model: the `mujoco.MjModel`, whose physics is not changed.
            size: of the images, in pixels.
            number: of the camera in the model.
            fast: no anti-aliasing, and fewer polygons for round bodies.
            shadows: whether to render shadows.
            groups: the geom groups to render; MuJoCo's default groups if not given.
        """
        self._mujoco = mujoco = load_mujoco()
        with explained():
            self._gl = mujoco.GLContext(size[1], size[0])
            self._gl.make_current()
            with _render_options(model, size, fast):
                self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        keep_triton_out()
        self._model = model
        self._scene = mujoco.MjvScene(model, maxgeom=MAX_GEOMS)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._view = mujoco.MjvCamera()
        self._view.type, self._view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED.value, number
        self._options = mujoco.MjvOption()
        if groups is not None:
            self._options.geomgroup[:] = np.isin(np.arange(len(self._options.geomgroup)), groups)
        self._frame = mujoco.MjrRect(0, 0, size[1], size[0])
        self._pixels = np.empty((*size, 3), np.uint8)
        _open_cameras.add(self)
        atexit.unregister(_close_all)
        atexit.register(_close_all)  # registered again, so that it runs before OpenGL's own exit handler

    def render(self, data: Any) -> UInt8[np.ndarray, "H W 3"]:
        """The image of the model in the state of `data`."""
        self._draw(data, self._pixels, None)
        return self._pixels[::-1].copy()  # OpenGL counts rows from the bottom

    def depth(self, data: Any) -> Float32[np.ndarray, "H W"]:
        """The distance of each pixel's surface along the camera's axis; the far plane where there is no surface."""
        nearness = np.empty(self._pixels.shape[:2], np.float32)
        self._context.readDepthMap = self._mujoco.mjtDepthMap.mjDEPTH_ZEROFAR.value
        with self._segmented():  # without anti-aliasing, which would interpolate between near and far surfaces
            self._draw(data, None, nearness)
        extent = self._model.stat.extent
        near, far = self._model.vis.map.znear * extent, self._model.vis.map.zfar * extent
        shares = nearness[::-1].astype(np.float64)
        return (near * far / (near + shares * (far - near))).astype(np.float32)

    def geoms(self, data: Any) -> Int[np.ndarray, "H W"]:
        """The number of the geom at each pixel, or -1."""
        with self._segmented():
            self._draw(data, self._pixels, None)
        numbers = self._pixels[::-1].astype(np.int64) @ [1, 1 << 8, 1 << 16]
        geom_of = np.full(self._scene.ngeom + 1, -1)
        for shape in self._scene.geoms[: self._scene.ngeom]:
            if shape.objtype == self._mujoco.mjtObj.mjOBJ_GEOM:
                geom_of[shape.segid + 1] = shape.objid
        return geom_of[numbers]

    def upload_terrain(self) -> None:
        """Copy the model's height fields to OpenGL."""
        self._make_current()
        for i in range(self._model.nhfield):
            self._mujoco.mjr_uploadHField(self._model, self._context, i)

    def close(self) -> None:
        """Free the resources of OpenGL; closing twice does nothing."""
        if self._gl is None:
            return
        self._make_current()
        if self._context is not None:
            self._context.free()
        self._gl.free()
        self._gl = None
        _open_cameras.discard(self)

    def _draw(
        self, data: Any, pixels: np.ndarray | None, depth: np.ndarray | None, categories: int | None = None
    ) -> None:
        mujoco = self._mujoco
        self._make_current()
        drawn = mujoco.mjtCatBit.mjCAT_ALL.value if categories is None else categories
        mujoco.mjv_updateScene(self._model, data, self._options, None, self._view, drawn, self._scene)
        mujoco.mjr_render(self._frame, self._scene, self._context)
        mujoco.mjr_readPixels(pixels, depth, self._frame, self._context)
        if problem := mujoco.mjr_getError():  # otherwise the last image would be returned again
            raise RenderingError(f"OpenGL failed to render (error {problem:#x})")

    @contextlib.contextmanager
    def _segmented(self) -> Iterator[None]:
        """Render the number of each geom as its colour."""
        flags = self._mujoco.mjtRndFlag
        before = self._scene.flags.copy()
        self._scene.flags[flags.mjRND_SEGMENT] = self._scene.flags[flags.mjRND_IDCOLOR] = True
        try:
            yield
        finally:
            self._scene.flags[:] = before

    def _make_current(self) -> None:
        if self._gl is None:
            raise RuntimeError("the camera is closed")
        self._gl.make_current()

    def __del__(self) -> None:
        self.close()


def project(
    model: Any, data: Any, camera: int, size: tuple[int, int], points: Float[np.ndarray, "n 3"]
) -> Float[np.ndarray, "n 2"]:
    """World points as (row, column) in the image of a camera, whose edges are at ±1."""
    right, up, back = ((points - data.cam_xpos[camera]) @ data.cam_xmat[camera].reshape(3, 3)).T
    focus = 1 / math.tan(math.radians(model.cam_fovy[camera]) / 2)  # in halves of the image's height
    height, width = size
    return np.stack([focus * up / back, -focus * right / back * (height / width)], axis=1)


def shares_of_picture(edges: Float[np.ndarray, "n 2"]) -> list[tuple[float, float]]:
    """Rows and columns from 0 to 1, of those with the edges at ±1."""
    return [(float(row), float(column)) for row, column in (edges + 1) / 2]


def load_mujoco() -> Any:
    """MuJoCo's module, configured for off-screen rendering; its names are invisible to type checkers."""
    choose_backend()
    with explained():
        import mujoco
    wanted = os.environ.get("MUJOCO_GL")
    if wanted in ("egl", "osmesa") and mujoco.GLContext.__module__ != f"mujoco.{wanted}":
        raise RenderingError(f"mujoco was imported before MUJOCO_GL was {wanted}: set MUJOCO_GL={wanted} in the shell")
    return mujoco


def _close_all() -> None:
    for camera in list(_open_cameras):
        camera.close()


@contextlib.contextmanager
def _render_options(model: Any, size: tuple[int, int], fast: bool) -> Iterator[None]:
    """Set the model's render options, which are read once when a context is made."""
    buffer, quality = model.vis.global_, model.vis.quality
    before = (buffer.offheight, buffer.offwidth, quality.offsamples, quality.numslices, quality.numstacks)
    buffer.offheight, buffer.offwidth = size
    if fast:
        quality.offsamples, quality.numslices, quality.numstacks = 0, SLICES, STACKS
    try:
        yield
    finally:
        buffer.offheight, buffer.offwidth, quality.offsamples, quality.numslices, quality.numstacks = before

"""Rendering: the mesh in cells and sets of visible pieces show what the whole mesh shows; maps agree with the mesh."""

import numpy as np
import pytest

from iap.envs.indoor.robots.protocol import Pose
from iap.envs.indoor.robots.rolling_base import EYE_M, EYE_PITCH_RAD, RollingBase
from iap.envs.indoor.scenes.compiled import compile_scene
from iap.envs.indoor.scenes.folder import SEGMENTS, read_scene
from iap.envs.indoor.scenes.model import HIDDEN_GROUP, SHOWN_GROUP, add_scene
from iap.envs.indoor.scenes.visibility import aim
from iap.envs.rendering.camera import Camera, load_mujoco

SIZE = (64, 64)
POSES = 40
ROUNDING = 1  # grey levels: MuJoCo moves each mesh to its middle, so that its vertices are rounded otherwise
MOST_DIFFERENT = 1e-4  # share of the pixels


def random_poses(scene, count: int, seed: int = 0) -> list[Pose]:
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(scene.map.walkable(0.2))
    chosen = rng.integers(len(rows), size=count)
    places = (scene.map.position(rows[i], columns[i]) for i in chosen)
    return [Pose(x, y, float(rng.uniform(-np.pi, np.pi))) for x, y in places]


def whole_images(folder, poses) -> list[np.ndarray]:
    """Images of the mesh in one piece for each material, by another camera."""
    mujoco, robot = load_mujoco(), RollingBase(SIZE, 90.0)
    spec = mujoco.MjSpec.from_string(robot.xml)
    scene = read_scene(folder)
    add_scene(mujoco, spec, scene, cell_m=None)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    number = model.camera("eye").id
    camera = Camera(model, SIZE, number, groups=(SHOWN_GROUP,))
    shown = []
    for x, y, yaw in poses:
        aim(data, number, (x, y, scene.floor_z_m + EYE_M), yaw, EYE_PITCH_RAD)
        shown.append(camera.render(data).copy())
    camera.close()
    return shown


@pytest.mark.parametrize("culled_faces", [0, 10**9], ids=["with sets of visible pieces", "by the frustum only"])
def test_the_pieces_that_are_shown_give_the_pixels_of_the_whole_mesh(apartment, culled_faces):
    robot = RollingBase(SIZE, 90.0)
    scene = compile_scene(apartment, robot.xml, robot.eye_m, culled_faces=culled_faces)
    assert (scene.visibility is None) == (culled_faces > 0)
    poses = random_poses(scene, POSES)
    robot.enter(scene)
    different, hidden = 0, 0
    for pose, whole in zip(poses, whole_images(apartment, poses), strict=True):
        robot.reset(pose, np.random.default_rng(0))
        different += int((np.abs(robot.image().astype(int) - whole).max(axis=-1) > ROUNDING).sum())
        first = scene.model.geom("piece0").id
        hidden += int((scene.model.geom_group[first : first + len(scene.pieces.segments)] == HIDDEN_GROUP).sum())
    robot.close()
    assert different <= MOST_DIFFERENT * POSES * SIZE[0] * SIZE[1]
    assert hidden > 0.3 * POSES * len(scene.pieces.segments)


def test_depth_and_classes_agree_with_the_image(small_scene):
    robot = RollingBase((48, 48), 90.0)
    scene = compile_scene(small_scene.folder, robot.xml, robot.eye_m, resolution_m=0.05)
    robot.enter(scene)
    robot.reset(Pose(-1.0, 0.3, 0.0), np.random.default_rng(0))  # the crate is 1.5 m ahead
    image, depth, segments = robot.image(), robot.depth(), robot.segments()
    robot.close()
    assert SEGMENTS[segments[20, 24]] == "furniture"
    assert SEGMENTS[segments[20, 2]] == "wall"
    assert depth[20, 24] == pytest.approx(1.5, abs=0.03)
    red, green, _ = image[20, 24]
    assert red > 1.5 * green


def test_a_texture_is_the_right_way_up(small_scene):
    """The lowest row of the texture is bright, and lies on the floor where y is smallest: on the right."""
    robot = RollingBase((48, 48), 60.0)
    robot.enter(compile_scene(small_scene.folder, robot.xml, robot.eye_m, resolution_m=0.05))
    robot.reset(Pose(-1.5, 0.0, 0.0), np.random.default_rng(0))
    row = robot.image()[-1, :, 0].astype(int)
    robot.close()
    assert row[-1] > row[0] + 10


def heights_below(model, points: np.ndarray, from_z: float) -> np.ndarray:
    """Where rays straight down from a height meet the mesh."""
    mujoco = load_mujoco()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    shown = np.zeros(6, np.uint8)
    shown[SHOWN_GROUP] = 1
    geom = np.zeros(1, np.int32)
    found = []
    for x, y in points:
        start, down = np.array([x, y, from_z]), np.array([0.0, 0.0, -1.0])
        found.append(from_z - mujoco.mj_ray(model, data, start, down, shown, 1, -1, geom))
    return np.array(found)


def test_the_floor_is_where_the_map_is_free_and_obstacles_are_where_it_is_not(apartment):
    robot = RollingBase(SIZE, 90.0)
    scene = compile_scene(apartment, robot.xml, robot.eye_m)
    floor, rng = scene.map, np.random.default_rng(0)
    points = {}
    for name, chosen in (("free", floor.clearance > 0.06), ("taken", ~floor.free)):
        rows, columns = np.nonzero(chosen)
        some = rng.choice(len(rows), 300, replace=False)
        points[name] = np.array([floor.position(int(rows[i]), int(columns[i])) for i in some])
    free = heights_below(scene.model, points["free"], scene.floor_z_m + 0.75)
    assert np.mean(np.abs(free - scene.floor_z_m) < 0.03) > 0.99
    low, high = floor.position(3, 3), floor.position(floor.free.shape[0] - 4, floor.free.shape[1] - 4)
    inside = points["taken"][((points["taken"] > low) & (points["taken"] < high)).all(axis=1)]
    taken = heights_below(scene.model, inside, scene.floor_z_m + 2.3)
    assert np.mean((taken > scene.floor_z_m + 0.05) | (taken < scene.floor_z_m - 1)) > 0.95


def test_the_sets_of_visible_pieces_leave_pieces_out(apartment):
    robot = RollingBase(SIZE, 90.0)
    scene = compile_scene(apartment, robot.xml, robot.eye_m, culled_faces=0)
    assert scene.visibility is not None
    assert scene.visibility.sets.mean() < 0.9
    assert scene.visibility.seen_from(1e6, 0.0) is None

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

from iap._registry import Registry, UnknownNameError
from iap.policies import CONTROLLERS, ENCODERS

PLUGIN = '''
from dataclasses import dataclass
import numpy as np
from iap.policies import Encoder, ParamSpec
from iap.policies.encoders import Encoding

@dataclass(frozen=True)
class Shade(Encoder):
    """The mean of the image."""

    gain: float = 1.0

    def feature_size(self, image_shape):
        return 1

    def param_specs(self, image_shape):
        return [ParamSpec("offset", (1,), 1.0)]

    def forward(self, params, images, uniforms=None):
        return Encoding(self.gain * images.reshape(len(images), -1).mean(axis=1, keepdims=True) + params["offset"])
'''
PROGRAM = """
import sys
import numpy as np
from iap.policies import ENCODERS, Policy, PolicyConfig, from_json, init, to_json
assert "shade" in ENCODERS and "rank" in ENCODERS and list(ENCODERS)[-1] == "shade"
assert "shade_package" not in sys.modules, "imported before it is used"
kind = ENCODERS["shade"]
config = PolicyConfig((8, 8, 1), 1, 2, encoder=kind(gain=0.5))
assert to_json(config)["encoder"] == {"kind": "shade", "gain": 0.5}
assert from_json(to_json(config)) == config
policy = Policy(config, init(config, 0))
action, state, _ = policy.act(policy.reset(), {"image": np.full((8, 8, 1), 4, np.uint8), "sensors": np.zeros(1)})
print(ENCODERS.name_of(kind), action.shape, round(float(state.inputs[0] - policy.params["encoder"]["offset"][0]), 3))
"""


def test_an_installed_package_adds_an_encoder_through_its_entry_point(tmp_path):
    (tmp_path / "shade_package.py").write_text(PLUGIN)
    info = tmp_path / "shade_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shade-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[iap.encoders]\nshade = shade_package:Shade\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "shade (2,) 2.0\n"


def test_entries_are_found_by_name_in_the_order_of_registration():
    registry: Registry[type] = Registry("thing", entries={"a": int})
    registry.register("b", float)
    assert list(registry) == ["a", "b"]
    assert len(registry) == 2
    assert registry["b"] is float
    assert "b" in registry
    assert "c" not in registry
    assert dict(registry) == {"a": int, "b": float}


def test_an_entry_given_as_text_is_imported_when_it_is_first_used():
    registry: Registry[type] = Registry("thing", entries={"ordered": "collections:OrderedDict"})
    assert registry.entry("ordered") == "collections:OrderedDict"
    assert registry["ordered"] is OrderedDict
    assert registry.entry("ordered") is OrderedDict
    assert registry.name_of(OrderedDict) == "ordered"


def test_a_name_can_be_registered_twice_only_for_the_same_object():
    registry: Registry[type] = Registry("thing", entries={"a": int})
    registry.register("a", int)
    with pytest.raises(ValueError, match="there is already a thing 'a'"):
        registry.register("a", float)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    registry: Registry[type] = Registry("thing", entries={"linear": int, "mlp": float})
    with pytest.raises(UnknownNameError, match=r"no thing 'linar'; did you mean 'linear'\? There are: linear, mlp"):
        registry["linar"]
    with pytest.raises(KeyError):
        registry["linar"]
    with pytest.raises(ValueError, match=r"there is no thing 'zzz'\. There are: linear, mlp"):
        registry["zzz"]
    with pytest.raises(ValueError, match="str is not a registered thing; registered are linear, mlp"):
        registry.name_of(str)


@pytest.mark.parametrize("registry", [ENCODERS, CONTROLLERS], ids=["encoders", "controllers"])
def test_every_registered_class_of_the_package_is_defined_in_a_file_of_its_package(registry):
    for name, kind in registry.items():
        assert registry.name_of(kind) == name
        if kind.__module__.startswith("iap."):
            file = Path(sys.modules[kind.__module__].__file__ or "")
            assert {parent.name for parent in file.parents} & {"encoders", "controllers"}
            assert kind.__doc__

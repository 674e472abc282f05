"""Named NumPy arrays as the parameters of a module, under the same names in its `state_dict`."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn


class Arrays(nn.Module):
    """The arrays of one part of a policy; "query.weight" is the parameter `weight` of the submodule `query`."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self._names = tuple(arrays)
        for name, array in arrays.items():
            *path, leaf = name.split(".")
            module: nn.Module = self
            for part in path:
                if part not in dict(module.named_children()):
                    module.add_module(part, nn.Module())
                module = module.get_submodule(part)
            module.register_parameter(leaf, nn.Parameter(torch.tensor(np.array(array, np.float32))))

    def tensors(self) -> dict[str, torch.Tensor]:
        """The parameters by name."""
        return {name: self.get_parameter(name) for name in self._names}

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies as NumPy arrays, by name."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.tensors().items()}

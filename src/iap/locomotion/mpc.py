"""Convex model-predictive control: the forces with which the standing feet carry the body along a reference.

The body is one rigid mass with a state of 13 numbers: angles (roll, pitch, yaw), place, turning speed, speed, gravity.
Yaw is zero, since everything is in a frame that has turned with the body. The forces minimise

    Σ_k ‖x_k − x*_k‖²_W + α Σ ‖f‖²

over the horizon, where feet push only in the steps in which they stand, inside their friction pyramids. The
exponential series of this system ends after two terms, so the quadratic program has a closed form (`mpc_kernels`).
"""

from dataclasses import dataclass

import numpy as np
import quadprog
from jaxtyping import Bool, Float

from iap.locomotion import mpc_kernels, qp_kernels

GRAVITY = 9.8


class QPError(RuntimeError):
    """No forces could be found: the quadratic program has no solution, or its numbers are not finite."""


@dataclass(frozen=True)
class MPCSpec:
    """The body and what is asked of it.

    Attributes:
        mass_kg: of the whole robot.
        inertia: about the centre of mass, along the axes of the body.
        horizon: steps to look ahead.
        step_s: length of a step.
        weights: of errors in angles, place, turning speed and speed.
        force_weight: α, of squared forces.
        friction: of the feet, less than the ground's for safety.
        least_share: of the weight, with which a standing foot presses at least.
        most_share: of the weight, with which it presses at most.
    """

    mass_kg: float
    inertia: tuple[float, float, float]
    horizon: int = 10
    step_s: float = 0.025
    weights: tuple[float, ...] = (5.0, 5.0, 0.2, 0.0, 0.0, 10.0, 0.5, 0.5, 0.2, 0.2, 0.2, 0.1)
    force_weight: float = 1e-6
    friction: float = 0.45
    least_share: float = 0.1
    most_share: float = 10.0


class ConvexMPC:
    """Solves for the forces of one robot.

    Attributes:
        solved: how many programs were solved.
        constrained: how many of them needed more than the unconstrained minimum.
    """

    def __init__(self, spec: MPCSpec) -> None:
        """Compute once what does not depend on the state."""
        self.spec = spec
        self.solved = 0
        self.constrained = 0
        self._sums = mpc_kernels.horizon_sums(spec.horizon, spec.step_s)
        constants = (spec.mass_kg, spec.force_weight, spec.step_s, GRAVITY)
        self._body = (np.array(spec.inertia), np.array(spec.weights), constants)
        weight_n = spec.mass_kg * GRAVITY
        self._limits = (spec.friction, spec.least_share * weight_n, spec.most_share * weight_n)

    def forces(
        self,
        state: Float[np.ndarray, " 12"],
        reference: Float[np.ndarray, "N 12"],
        contacts: Bool[np.ndarray, "N 4"],
        feet: Float[np.ndarray, "N 4 3"],
    ) -> Float[np.ndarray, "N 4 3"]:
        """What the ground shall push each foot with in each step; nothing where a foot does not stand.

        Args:
            state: angles, place, turning speed and speed of the body, with yaw zero.
            reference: the same, wanted at the end of each step.
            contacts: which feet stand in each step.
            feet: where each foot is in each step, from the centre of mass.

        Raises:
            QPError: if there are no such forces.
        """
        forces, outcome, hessian, gradient = qp_kernels.solve(
            state, reference, contacts, feet, self._body, self._sums, self._limits
        )
        if outcome == qp_kernels.NO_CONTACTS:
            return forces
        self.solved += 1
        if outcome == qp_kernels.NOT_CONVEX:
            raise QPError("the quadratic program is not convex: its numbers are not finite, or far too large")
        if outcome == qp_kernels.NOT_ALLOWED:
            self.constrained += 1
            best = self._constrained(hessian, gradient)
            if not np.isfinite(best).all():
                raise QPError("the quadratic program has no solution: its numbers are not finite")
            forces[contacts] = best.reshape(-1, 3)
        return forces

    def program(
        self,
        state: Float[np.ndarray, " 12"],
        reference: Float[np.ndarray, "N 12"],
        contacts: Bool[np.ndarray, "N 4"],
        feet: Float[np.ndarray, "N 4 3"],
    ) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, " n"]]:
        """The Hessian and gradient over the forces of standing feet, by steps and then legs."""
        return mpc_kernels.build(state, reference, contacts, feet, self._body, self._sums)

    def _constrained(self, hessian: Float[np.ndarray, "n n"], gradient: Float[np.ndarray, " n"]) -> np.ndarray:
        columns, bounds = qp_kernels.constraints(len(gradient) // 3, *self._limits)
        try:
            return quadprog.solve_qp(hessian, -gradient, columns, bounds)[0]
        except ValueError as error:
            raise QPError(f"the quadratic program has no solution: {error}") from error

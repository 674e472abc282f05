"""A policy's C code on an emulated Cortex-M4: bytes of code and of RAM, instructions a frame, and its actions."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from iap.interop.c.export import self_test
from iap.interop.c.files import CFiles
from iap.interop.compiling import WARNINGS, run_tool, write_c
from iap.interop.recording import RecordedStep

COMPILER, EMULATOR, SIZE = "arm-none-eabi-gcc", "qemu-system-arm", "arm-none-eabi-size"
TARGET = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
SMALL = ("-Os", "-ffunction-sections", "-fdata-sections")
FAST = ("-O3", "-ffast-math")
INSTRUCTIONS_A_TICK = 40  # SysTick of the board mps2-an386 has 25 MHz, and QEMU counts one instruction as 1 ns

LINKER_SCRIPT = """\
MEMORY { FLASH (rx) : ORIGIN = 0, LENGTH = 4M  RAM (rw) : ORIGIN = 0x20000000, LENGTH = 4M }
ENTRY(start)
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) . = ALIGN(8); } > FLASH
  .ARM.exidx : { *(.ARM.exidx*) } > FLASH
  .data : { data_begin = .; *(.data*) . = ALIGN(4); data_end = .; } > RAM AT > FLASH
  data_load = LOADADDR(.data);
  .bss : { bss_begin = .; *(.bss*) *(COMMON) . = ALIGN(8); bss_end = .; end = .; } > RAM
  stack_top = ORIGIN(RAM) + LENGTH(RAM);
}
"""
PROGRAM = """\
#define main recorded_main
#include "{name}_test.c"
#undef main

extern uint32_t data_begin, data_end, data_load, bss_begin, bss_end, stack_top;
void start(void);
static void stop(void) {{ for (;;) {{ }} }}
__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {{
    (void (*)(void))&stack_top, start, stop, stop, stop, stop, stop
}};

static int call_host(int operation, const void *argument)
{{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}}

static void print_number(uint32_t number)
{{
    char text[] = "00000000\\n";
    for (int i = 0; i < 8; ++i) {{
        text[7 - i] = "0123456789abcdef"[number >> (4 * i) & 15];
    }}
    call_host(4, text);
}}

enum {{ STACK_WORDS = 1 << 16, UNUSED = 0x5a5a5a5a }};
static volatile uint32_t *const systick = (uint32_t *)0xE000E010;

void start(void)
{{
    uint32_t *from = &data_load;
    for (uint32_t *to = &data_begin; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &bss_begin; to < &bss_end;) *to++ = 0;
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the floating-point unit */
    __asm__ volatile("dsb; isb");
    print_number(sizeof(state));
    uint32_t *const stack = &stack_top - STACK_WORDS;
    for (uint32_t *word = stack; word < (uint32_t *)__builtin_frame_address(0) - 256; ++word) *word = UNUSED;
    for (int step = 0; step < STEPS; ++step) {{
        float action[ACTIONS];
        const int number = image_numbers[step];
        if (starts[step]) {name}_reset(&state);
        systick[1] = 0xffffff;
        systick[2] = 0;
        systick[0] = 5;
        {name}_act(&state, number >= 0 ? images[number] : NULL, observed[step], action, NULL);
        print_number(0xffffff - systick[2]);
        for (int i = 0; i < ACTIONS; ++i) {{
            uint32_t bits;
            __builtin_memcpy(&bits, action + i, sizeof bits);
            print_number(bits);
        }}
    }}
    const uint32_t *deepest = stack;
    while (*deepest == UNUSED) ++deepest;
    print_number(4 * (uint32_t)(&stack_top - deepest));
    call_host(0x18, (const void *)0x20026);
    stop();
}}
"""


@dataclass(frozen=True)
class OnCortexM4:
    """What was measured.

    Attributes:
        code_bytes: code and constants of the policy's object file, optimised for size.
        ram_bytes: the size of its state.
        stack_bytes: the deepest use of the stack, by the test program and the policy.
        instructions_a_frame: mean over the recorded steps with an image, optimised for speed.
        instructions_a_held_step: mean over those without; 0 if there are none.
        actions: (steps, actions).
    """

    code_bytes: int
    ram_bytes: int
    stack_bytes: int
    instructions_a_frame: float
    instructions_a_held_step: float
    actions: np.ndarray


def missing_tools() -> list[str]:
    """The tools that are not installed."""
    return [tool for tool in (COMPILER, SIZE, EMULATOR) if shutil.which(tool) is None]


def run_on_cortex_m4(files: CFiles, steps: Sequence[RecordedStep]) -> OnCortexM4:
    """Compile a policy for a Cortex-M4 and run it on recorded observations in QEMU."""
    if missing := missing_tools():
        packages = "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
        raise FileNotFoundError(f"{', '.join(missing)} not found: apt-get install {packages}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_c(files, folder)
        (folder / f"{files.name}_test.c").write_text(self_test(files, steps))
        (folder / "program.c").write_text(PROGRAM.format(name=files.name))
        (folder / "board.ld").write_text(LINKER_SCRIPT)
        source, small, image = (folder / part for part in (f"{files.name}.c", "small.o", "program.elf"))
        run_tool([COMPILER, *WARNINGS, *TARGET, *SMALL, "-c", source, "-o", small], COMPILER)
        code = run_tool([SIZE, small], SIZE).splitlines()[1].split()
        build = [COMPILER, *TARGET, *FAST, "-std=gnu99", "-nostartfiles", "--specs=nosys.specs"]
        run_tool(
            [*build, "-T", folder / "board.ld", folder / "program.c", source, "-o", image, "-lm"],
            COMPILER,
        )
        machine = ["-M", "mps2-an386", "-cpu", "cortex-m4", "-icount", "shift=0", "-kernel", image]
        console = ["-display", "none", "-serial", "none", "-monitor", "none", "-chardev", "stdio,id=host"]
        semihosting = ["-semihosting-config", "enable=on,target=native,chardev=host"]
        output = run_tool([EMULATOR, *machine, *console, *semihosting], EMULATOR)
    numbers = np.array([int(line, 16) for line in output.split()], np.uint32)
    rows = numbers[1:-1].reshape(len(steps), -1)
    counts = rows[:, 0].astype(float) * INSTRUCTIONS_A_TICK
    encoded = np.array([step.image is not None for step in steps])
    frame, held = (float(counts[chosen].mean()) if chosen.any() else 0.0 for chosen in (encoded, ~encoded))
    actions = np.ascontiguousarray(rows[:, 1:]).view(np.float32)
    return OnCortexM4(int(code[0]) + int(code[1]), int(numbers[0]), int(numbers[-1]), frame, held, actions)

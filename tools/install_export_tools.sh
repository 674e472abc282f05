#!/bin/sh
# What exported policies are tested with: C compilers, WebAssembly, Node, valgrind, a Cortex-M4 compiler and emulator.
# Installs what is missing where it may, else prints the command. Without them those tests are skipped.
has() { command -v "$1" >/dev/null 2>&1; }

[ "$(uname -s)" = Linux ] || exit 0
packages=""
has cc || packages="$packages gcc libc6-dev"
has clang || packages="$packages clang"
has wasm-ld || packages="$packages lld"
[ -e /usr/lib/wasm32-wasi/libc.a ] || packages="$packages wasi-libc"
ls /usr/lib/llvm-*/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a >/dev/null 2>&1 || packages="$packages libclang-rt-dev-wasm32"
has node || packages="$packages nodejs"
has valgrind || packages="$packages valgrind"
has cmake || packages="$packages cmake"
has arm-none-eabi-gcc || packages="$packages gcc-arm-none-eabi libnewlib-arm-none-eabi"
has qemu-system-arm || packages="$packages qemu-system-arm"
[ -n "$packages" ] || exit 0

command="apt-get update && apt-get install -y --no-install-recommends$packages"
if has apt-get && [ "$(id -u)" = 0 ]; then
  echo "installing the tools of exported policies:$packages"
  if log=$(sh -c "$command" 2>&1); then exit 0; fi
  echo "$log" | tail -n 5 >&2
elif has apt-get && has sudo && sudo -n true 2>/dev/null; then
  echo "installing the tools of exported policies:$packages"
  if log=$(sudo -n sh -c "$command" 2>&1); then exit 0; fi
  echo "$log" | tail -n 5 >&2
fi
echo "Tools of exported policies are missing; their tests are skipped. On Debian or Ubuntu, run:" >&2
echo "  sudo sh -c '$command'" >&2
exit 0

#!/bin/sh
# Headless OpenGL for the simulator's cameras: installs what is missing where it may, else prints the command.
packages="libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libgles2 libopengl0"
has() { ldconfig -p 2>/dev/null | grep -q "$1"; }

[ "$(uname -s)" = Linux ] || exit 0
if has 'libEGL\.so\.1' && has 'libEGL_mesa\.so\.0' && has 'libOpenGL\.so\.0'; then exit 0; fi

command="apt-get update && apt-get install -y $packages"
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  echo "installing the OpenGL libraries: $packages"
  if log=$(sh -c "$command" 2>&1); then exit 0; fi
  echo "$log" | tail -n 5 >&2
elif command -v apt-get >/dev/null 2>&1 && command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  echo "installing the OpenGL libraries: $packages"
  if log=$(sudo -n sh -c "$command" 2>&1); then exit 0; fi
  echo "$log" | tail -n 5 >&2
fi
echo "OpenGL libraries are missing, so cameras cannot render. On Debian or Ubuntu, run:" >&2
echo "  sudo sh -c '$command'" >&2
exit 0

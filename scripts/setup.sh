# Shared by quickstart, test and bench: sourced, not run. Installs the Debian packages that are missing.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

say() { printf '\n== %s\n' "$*" >&2; }

# install_packages PACKAGE...: only what dpkg does not know yet; root or sudo.
install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "these packages are missing, and there is neither root nor sudo to install them: ${missing[*]}" >&2; exit 6; }
    sudo=sudo
  fi
  say "installing ${missing[*]}"
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

build_packages=(g++ ccache cmake ninja-build libsystemc-dev libyaml-cpp-dev libsqlite3-dev libboost-graph-dev libssl-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev libceres-dev zlib1g-dev libpugixml-dev rapidjson-dev)
test_packages=(lld libgtest-dev libgmock-dev libbenchmark-dev protobuf-compiler sqlite3)
full_packages=(clang-14 clang-tidy-14 libclang-rt-14-dev libsimgrid-dev
  slurmctld slurmd slurm-client munge)

# build PRESET [TARGET...]: configures (packages may have come since the last time), then builds what changed.
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" ${*:+--target "$@"}
}

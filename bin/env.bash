# Sourced by the scripts of this folder: where things are.
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
cache=${RRTRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rrtrace}
visualizer=$root/build/release/rrtrace-visualizer

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Sets ruby and gems (the folder of the project's gems) to what bin/setup found or built.
find_ruby() {
  [[ -s $root/build/ruby && -s $root/build/gems ]] || die "No Ruby is set up yet: run bin/setup."
  ruby=$(<"$root/build/ruby")
  gems=$(<"$root/build/gems")
  [[ -x $ruby ]] || die "$ruby, which bin/setup found, is gone: run bin/setup again."
}

rake() { (cd "$root" && "$root/bin/ruby" "$gems/bin/rake" --silent "$@"); }

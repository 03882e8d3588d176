# Sourced by the other scripts: makes .venv in the project and installs into it, when that is needed.
# Needs Python 3.11 or newer and nothing else; the system's own packages are not touched.

cd "$(dirname "$0")/.."

# pip need not compile what is never imported; Python keeps what it compiles, also where an image forbids that.
export PIP_COMPILE=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
unset PYTHONDONTWRITEBYTECODE

find_python() {
    for name in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 || continue
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$name"; return 0; }
    done
    echo "Python 3.11 or newer is needed and was not found (looked for python3, python3.14 … python3.11)." >&2
    echo "Debian/Ubuntu: sudo apt install python3 python3-venv    macOS: brew install python" >&2
    echo "Or name one: PYTHON=/path/to/python3 $0" >&2
    return 1
}

# install EXTRAS: "" or "[dev]". Does nothing when pyproject.toml has not changed since the last time.
install() {
    stamp=".venv/installed$1"
    for made in "$stamp" ".venv/installed[dev]"; do
        [ -x .venv/bin/python ] && [ "$made" -nt pyproject.toml ] && return 0
    done
    python=$(find_python)
    if [ ! -x .venv/bin/pip ]; then
        echo "Making a virtual environment in .venv with $("$python" --version) …"
        if ! "$python" -m venv .venv; then
            rm -rf .venv
            echo "The module venv is missing. Debian/Ubuntu: sudo apt install python3-venv" >&2
            return 1
        fi
    fi
    echo "Installing (about a minute the first time) …"
    .venv/bin/python -m pip install --editable ".$1"
    touch "$stamp"
}

# docker build -t adaptive-eval .
# docker run --rm -v "$PWD:/work" -u "$(id -u):$(id -g)" adaptive-eval run my.yaml
# The image is python:3.12-slim of 5 August 2026 with Python 3.12.13, for all its platforms.
FROM python:3.12-slim@sha256:229a2c5bfa27522db7815ea81f9bed70af17ccb9de9fc7ad142b1877b5830d36 AS build
COPY . /src
ENV PIP_CONSTRAINT=/src/constraints.txt
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.12-slim@sha256:229a2c5bfa27522db7815ea81f9bed70af17ccb9de9fc7ad142b1877b5830d36
# bubblewrap: the sandbox of the scorer code
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    --mount=type=bind,source=constraints.txt,target=/constraints.txt \
    pip install --no-cache-dir --constraint /constraints.txt "$(echo /wheels/*.whl)[data,scoring]"
RUN useradd --create-home evaluator
USER evaluator
WORKDIR /work
ENTRYPOINT ["adaptive-eval"]
CMD ["--help"]

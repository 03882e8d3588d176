# docker build -t adaptive-eval .
# docker run --rm -v "$PWD:/work" -u "$(id -u):$(id -g)" adaptive-eval run my.yaml
FROM python:3.12-slim AS build
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.12-slim
# bubblewrap: the sandbox of the scorer code
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(echo /wheels/*.whl)[data,scoring]"
RUN useradd --create-home evaluator
USER evaluator
WORKDIR /work
ENTRYPOINT ["adaptive-eval"]
CMD ["--help"]

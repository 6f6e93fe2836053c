# The web app in a container: docs/operating.md says how it is built and run.
#
# Not root, nothing written but /store and /tmp, so that it runs with a read-only root and 64 MB of /dev/shm.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# The address of a package index with torch's wheels for CPUs. Without it torch comes from pip's usual index, with
# several GB of CUDA libraries.
ARG TORCH_INDEX=""
ENV PATH=/opt/inspector/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/inspector
WORKDIR /source
COPY requirements.txt ./
# Their own requirements, but for CUDA, are in requirements.txt.
RUN if [ -n "$TORCH_INDEX" ]; then \
        pip install --no-deps --index-url "$TORCH_INDEX" $(grep -E '^torch(vision)?==' requirements.txt); \
    fi
RUN pip install -r requirements.txt
COPY . .
RUN pip install --no-deps --no-build-isolation . \
    && python sample_models/build.py derive \
        --output /opt/inspector/samples/files --pictures /opt/inspector/samples/pictures

FROM python:${PYTHON}-slim
COPY --from=build /opt/inspector /opt/inspector
RUN groupadd --gid 10001 inspector \
    && useradd --uid 10001 --gid 10001 --no-create-home --no-log-init --shell /usr/sbin/nologin inspector \
    && install -d -o 10001 -g 10001 -m 0700 /store
ENV PATH=/opt/inspector/bin:$PATH \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    INSPECTOR_STORE=/store/uploads \
    INSPECTOR_SAMPLES=/opt/inspector/samples \
    INSPECTOR_LOG=json
USER 10001:10001
VOLUME /store
EXPOSE 8501
# A new process each time, without torch. It asks by a name of this machine's own, which the server always answers to.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/inspector/live', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["python", "-m", "inspector", "app", "--address", "0.0.0.0", "--port", "8501", "--no-browser"]

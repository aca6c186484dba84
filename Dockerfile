# hf-spanner serve in a container:   docker build -t hf_spanner .   &&   docker run -p 8000:8000 hf_spanner
#
# UNTRIED: it was written on a machine without Docker. Every command in it has been run by itself, the build has not.
#
# A model of your own:   docker run -p 8000:8000 -v "$PWD/runs/mine:/model:ro" hf_spanner --model /model
FROM python:3.11-slim

# The CPU build of torch, gigabytes smaller than the one with CUDA, before anything can ask for the other.
COPY constraints.txt /src/
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu -c /src/constraints.txt \
    torch==2.13.0+cpu

COPY setup.py pyproject.toml MANIFEST.in README.md LICENSE NOTICE /src/
COPY hf_spanner /src/hf_spanner
COPY modeling /src/modeling
COPY model_cards /src/model_cards
RUN pip install --no-cache-dir -c /src/constraints.txt "/src[serve]" && rm -rf /src

# Nothing is written but the Hub's cache, and nobody is root.
RUN useradd --create-home reader
USER reader
ENV HF_HOME=/home/reader/cache TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1

EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
# Inside a container 0.0.0.0 is the container alone; `docker run -p` says who reaches it.
ENTRYPOINT ["hf-spanner", "serve", "--host", "0.0.0.0", "--port", "8000"]

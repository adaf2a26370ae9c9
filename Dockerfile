# almanaq serve in a container: docker build -t almanaq . && docker run --rm -p 127.0.0.1:8765:8765 almanaq
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/almanaq \
 && /opt/almanaq/bin/pip install --no-cache-dir --constraint constraints.txt '.[web,mcp,postgres]'

FROM python:3.12-slim
RUN useradd --uid 10001 --create-home --home-dir /var/lib/almanaq almanaq
COPY --from=build /opt/almanaq /opt/almanaq
ENV PATH=/opt/almanaq/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    ALMANAQ_CACHE_DIR=/var/lib/almanaq/cache XDG_CONFIG_HOME=/var/lib/almanaq/config
# The root file system may be read-only: whatever is written goes to these two.
VOLUME ["/var/lib/almanaq", "/tmp"]
USER 10001
WORKDIR /var/lib/almanaq
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8765/healthz', timeout=4)"]
# Others can reach the container, so that it needs a token: ALMANAQ_TOKEN.
ENTRYPOINT ["almanaq", "serve", "--host", "0.0.0.0", "--port", "8765"]
CMD ["sample:restaurants"]

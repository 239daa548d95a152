# Debian 12 with the simulator built: docker run -it IMAGE ./ladder exercise coalesce
# The folder is where a development container has the checkout: what is compiled here is in ccache there.
FROM debian:12-slim
ENV CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=/var/cache/ccache CCACHE_COMPRESSLEVEL=9
WORKDIR /workspaces/ConvLadder
COPY . .
RUN apt-get update -q && apt-get install -qy --no-install-recommends ccache git libblas-dev bubblewrap \
 && ./ladder build sim-count convladder exercise_judge add \
 && ./ladder build sim convladder convladder_c \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /usr/share/doc /usr/share/man
CMD ["bash"]

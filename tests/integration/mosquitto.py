"""A real broker (Debian's mosquitto) on a port of its own, never the system's service."""

import shutil
import socket
import subprocess

from cluster import wait_until

PROGRAM = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Broker:
    """A broker in a Workplace. `lines`: of its configuration, beside listener and log."""

    def __init__(self, place, *lines, access="allow_anonymous true"):
        self.place = place
        self.port = free_port()
        folder = place.output / "broker"
        folder.mkdir(exist_ok=True)
        self.log = folder / "log"
        self.configuration = folder / "mosquitto.conf"
        self.configuration.write_text("\n".join([
            f"listener {self.port} 127.0.0.1", access, f"log_dest file {self.log}", "log_type all",
            f"persistence_location {folder}/", "user root", *lines, ""]))  # fmt: skip
        self.running = None
        self.start()

    @property
    def uri(self):
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self):
        self.running = self.place.start(PROGRAM, "-c", self.configuration)
        assert wait_until(lambda: answers(self.port) or self.running.has_ended(), 20)
        assert not self.running.has_ended(), self.running.finish().err

    def kill(self):
        """As a crash: nothing is written, nothing is said."""
        self.running.process.kill()
        self.running.finish()

    def stop(self):
        """In order: what persists is written."""
        self.running.process.terminate()
        self.running.finish()

    def subscribe(self, *arguments):
        """mosquitto_sub at this broker; ends by its own -C or -W."""
        return self.place.start("mosquitto_sub", "-h", "127.0.0.1", "-p", self.port, *arguments)


def make_certificates(folder):
    """ca.pem, and NAME.pem with NAME.key for `broker` (localhost), `gateway` and, by another
    authority that nobody trusts, `stranger`."""

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True,
                       timeout=20, cwd=folder)  # fmt: skip

    def key_and_request(name):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-subj", f"/CN={name}")  # fmt: skip

    for authority in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-keyout", f"{authority}.key", "-out", f"{authority}.pem", "-days", 2,
                "-subj", f"/CN=test {authority}")  # fmt: skip
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    for name, authority in (("broker", "ca"), ("gateway", "ca"), ("stranger", "other")):
        key_and_request(name)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey",
                f"{authority}.key", "-set_serial", 1, "-days", 2, "-extfile", "names", "-out",
                f"{name}.pem")  # fmt: skip

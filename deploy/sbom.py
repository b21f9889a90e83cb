#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what a container image holds as a CycloneDX document: its Debian packages, from dpkg's own database, and
Attendant itself.

    docker export $(docker create attendant) | tar -xO var/lib/dpkg/status | deploy/sbom.py --version 0.1.0 > sbom.json
    deploy/image.sh --sbom sbom.json                    builds the image and writes the same

The same image gives the same bytes.
"""

import argparse
import hashlib
import json
import sys
import urllib.parse
import uuid


def packages(text):
    """The fields of each installed package of a dpkg status file."""
    for paragraph in text.split("\n\n"):
        fields = {}
        for line in paragraph.splitlines():
            if line[:1] not in (" ", "\t", "") and ":" in line:
                key, value = line.split(":", 1)
                fields[key] = value.strip()
        if fields.get("Status") == "install ok installed":
            yield fields


def component(fields):
    """A package as CycloneDX has it. Its source package is what security trackers name."""
    name, version, architecture = (fields[key] for key in ("Package", "Version", "Architecture"))
    source, _, source_version = fields.get("Source", name).partition(" ")
    quoted_name, quoted_version = (urllib.parse.quote(text, safe="") for text in (name, version))
    purl = f"pkg:deb/debian/{quoted_name}@{quoted_version}?arch={architecture}"
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        "properties": [{"name": "debian:source", "value": source},
                       {"name": "debian:source_version", "value": source_version.strip("()") or version}],
    }


def document(text, version):
    components = sorted(map(component, packages(text)), key=lambda made: made["bom-ref"])
    program = {"type": "application", "bom-ref": f"pkg:generic/attendant@{version}", "name": "attendant",
               "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}]}
    content = json.dumps([program, components], sort_keys=True).encode()
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.UUID(hashlib.sha256(content).hexdigest()[:32])}",
        "metadata": {"component": program},
        "components": components,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("status", nargs="?", type=argparse.FileType("r", encoding="utf-8"), default=sys.stdin,
                        help="var/lib/dpkg/status of the image; without it, standard input")
    parser.add_argument("--version", required=True, help="of Attendant")
    arguments = parser.parse_args()
    made = document(arguments.status.read(), arguments.version)
    if not made["components"]:
        sys.exit("sbom: there is no installed package in that file")
    json.dump(made, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

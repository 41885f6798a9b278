#!/usr/bin/env python3
"""Packs the extension for Visual Studio Code: vsix.py OUT.vsix. The same files give the same bytes."""
import json
import os
import sys
import zipfile
from xml.sax.saxutils import quoteattr

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vscode")
TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension=".json" ContentType="application/json"/>
  <Default Extension=".js" ContentType="application/javascript"/>
  <Default Extension=".vsixmanifest" ContentType="text/xml"/>
</Types>
"""


def manifest(p):
    def q(name):
        return quoteattr(p[name])

    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={q("name")} Version={q("version")} Publisher={q("publisher")}/>
    <DisplayName>{p["displayName"]}</DisplayName>
    <Description xml:space="preserve">{p["description"]}</Description>
    <Categories>{",".join(p["categories"])}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(p["engines"]["vscode"])}/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def main(out):
    with open(os.path.join(HERE, "package.json"), encoding="utf-8") as f:
        files = {"extension.vsixmanifest": manifest(json.load(f)), "[Content_Types].xml": TYPES}
    for folder, _, names in os.walk(HERE):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as f:
                files["extension/" + os.path.relpath(path, HERE)] = f.read()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name in ["extension.vsixmanifest"] + sorted(n for n in files if n != "extension.vsixmanifest"):
            z.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(sys.argv[1])

